import type { Express } from 'express';
import { onlyMethods } from '../../../../http/app';
import { type Html, html } from '../../../../http/html';
import { wireTime } from '../../clock';
import type { EmulatorContext } from '../../context';
import { queryUsage } from '../../library/usage';
import { actionSchema, readActionFields } from '../../resources/body';
import { SITE_ACTIONS } from '../../resources/site-table';
import { bytes, duration } from '../elements';
import { problemList, selectField } from '../forms';
import { layout } from '../layout';
import type { PageQuery } from '../search';
import { plot } from './plot';
import { attempt, labelOf } from './resource-form';

const PATH = '/dashboard/usage';

const schema = actionSchema(SITE_ACTIONS.query_usage.body);
const DAY_FIELDS = Object.keys(SITE_ACTIONS.query_usage.body);

/** The page of what sites use. */
export function mountUsagePage(app: Express, context: EmulatorContext): void {
  app
    .route(PATH)
    .get(async ({ query }, response) => {
      const { siteIds } = context.seeds;
      const site = siteIds.find((id) => id === query.site);
      const sites = site === undefined ? siteIds : [site];
      const asked = Object.fromEntries(
        DAY_FIELDS.flatMap((name) =>
          typeof query[name] === 'string' && query[name] !== '' ? [[name, query[name]]] : [],
        ),
      );
      let used = queryUsage(context, sites, {});
      const problems = await attempt([], () => {
        used = queryUsage(context, sites, readActionFields(schema, asked, 'invalid_parameter'));
      });
      response
        .status(problems.length > 0 ? 400 : 200)
        .send(usagePage(context, { query, site, used, problems }));
    })
    .all(onlyMethods('GET'));
}

type Used = ReturnType<typeof queryUsage>;
type Measure = Exclude<keyof Used['results'][number], 'site_id' | 'date'>;

/** What one day of all the sites comes to. */
interface Day extends Readonly<Record<Measure, number>> {
  readonly date: string;
}

interface UsageView {
  readonly query: PageQuery;
  readonly site: string | undefined;
  readonly used: Used;
  readonly problems: readonly string[];
}

function usagePage(context: EmulatorContext, { query, site, used, problems }: UsageView): string {
  const measures = measuresOf(used);
  const days = daysOf(used, measures);
  const total = (measure: Measure) => days.reduce((sum, day) => sum + day[measure], 0);
  const ordered: Measure[] = ['deliveries', ...measures];
  const shown =
    measures.find((measure) => measure === query.show) ??
    ordered.find((measure) => total(measure) > 0) ??
    'deliveries';
  const addressOf = (changed: Readonly<Record<string, string>>) => {
    const { start_date, end_date } = used;
    const asked = { start_date, end_date, ...(site !== undefined && { site }), show: shown, ...changed };
    return `${PATH}?${new URLSearchParams(asked).toString()}`;
  };
  const tiles = measures.map(
    (measure) =>
      html`<li><a class="tile" href="${addressOf({ show: measure })}"${measure === shown && html` aria-current="true"`}><b>${said(measure, total(measure))}</b> <span>${namesOf(measure)}</span></a></li>`,
  );
  const isNothing = measures.every((measure) => total(measure) === 0);
  return layout({
    title: 'Usage',
    section: PATH,
    intro: 'What is counted for each site and day, by the platform’s clock in UTC.',
    content: html`${problemList(problems)}
      ${chooser(context, { used, site, shown, addressOf })}
      <ul class="tiles" aria-label="Totals from ${used.start_date} to ${used.end_date}">${tiles}</ul>
      ${
        isNothing
          ? html`<div class="empty"><p>Nothing was used in these days. <a href="/dashboard/media#upload-media">Upload a media</a>, or ask for one as a player does.</p></div>`
          : html`<section class="card" aria-labelledby="plot-title"><h2 id="plot-title">${namesOf(shown)}, day by day</h2>
        ${plot({
          title: `${namesOf(shown)} from ${used.start_date} to ${used.end_date}`,
          days: days.map((day) => ({ date: day.date, value: day[shown] })),
          said: (value) => said(shown, value),
          unit: shown.endsWith('_seconds') ? 'seconds' : 'decimal',
        })}
        <details id="figures"><summary class="link"><span class="closed">Show</span><span class="opened">Hide</span> the figures</summary>${figures(days, measures, total)}</details>
      </section>`
      }`,
  });
}

function measuresOf({ results: [first] }: Used): Measure[] {
  return Object.keys(first ?? {}).filter((name): name is Measure => name !== 'site_id' && name !== 'date');
}

function daysOf({ results }: Used, measures: readonly Measure[]): Day[] {
  const days = new Map<string, Record<Measure, number> & { date: string }>();
  for (const result of results) {
    const day = days.get(result.date);
    if (!day) days.set(result.date, { ...result });
    else for (const measure of measures) day[measure] += result[measure];
  }
  return [...days.values()];
}

function namesOf(measure: Measure): string {
  return labelOf(measure.replace(/_(?:bytes|seconds)$/, ''));
}

function said(measure: Measure, value: number): string {
  if (measure.endsWith('_bytes')) return bytes(value);
  return measure.endsWith('_seconds') ? duration(value) : String(value);
}

const SPANS = [7, 30, 90, 365];
const DAY_MS = 24 * 60 * 60 * 1000;

interface Chooser {
  readonly used: Used;
  readonly site: string | undefined;
  readonly shown: Measure;
  readonly addressOf: (changed: Readonly<Record<string, string>>) => string;
}

/** Which days, and of which site. */
function chooser({ seeds, clock }: EmulatorContext, { used, site, shown, addressOf }: Chooser): Html {
  const now = clock.now();
  const dayAt = (at: Date) => wireTime(at).slice(0, 10);
  const spans = SPANS.map((days) => {
    const start_date = dayAt(new Date(now.getTime() - (days - 1) * DAY_MS));
    const end_date = dayAt(now);
    const isShown = used.start_date === start_date && used.end_date === end_date;
    return html`<li><a class="button button-small" href="${addressOf({ start_date, end_date })}"${isShown && html` aria-current="true"`}>${days === 365 ? 'A year' : `${days} days`}</a></li>`;
  });
  const day = (name: 'start_date' | 'end_date', label: string) =>
    html`<div class="field"><label for="${name}">${label}</label><input type="date" id="${name}" name="${name}" value="${used[name]}"></div>`;
  const choices = [
    { value: '', label: 'All sites' },
    ...seeds.siteIds.map((id) => ({ value: id, label: id })),
  ];
  return html`<form class="chooser" action="${PATH}">
    <input type="hidden" name="show" value="${shown}">
    ${day('start_date', 'First day')}${day('end_date', 'Last day')}
    ${seeds.siteIds.length > 1 && selectField({ name: 'site', label: 'Site', value: site ?? '', choices })}
    <button class="button">Show</button>
    <ul class="spans" aria-label="The latest days">${spans}</ul>
  </form>`;
}

/** The table behind the plot. */
function figures(
  days: readonly Day[],
  measures: readonly Measure[],
  total: (measure: Measure) => number,
): Html {
  const row = (name: string, value: (measure: Measure) => number, isTotal = false) =>
    html`<tr role="row"${isTotal && html` class="total"`}><th scope="row" role="rowheader">${name}</th>${measures.map(
      (measure) =>
        html`<td role="cell" data-label="${namesOf(measure)}"><div>${said(measure, value(measure))}</div></td>`,
    )}</tr>`;
  return html`<table role="table" class="figures"><caption class="unseen">What was used, the latest day first. On days that are not listed, nothing was.</caption>
    <thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Day</th>${measures.map((measure) => html`<th scope="col" role="columnheader">${namesOf(measure)}</th>`)}</tr></thead>
    <tbody role="rowgroup">${row('Total', total, true)}${days
      .filter((day) => measures.some((measure) => day[measure] > 0))
      .toReversed()
      .map((day) => row(day.date, (measure) => day[measure]))}</tbody></table>`;
}
