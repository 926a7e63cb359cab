import type { Express } from 'express';
import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { DAY_MS, dayOf, USAGE_ACTIONS, usageOf } from '../resources/usage';
import {
  bytes,
  type Column,
  disclosure,
  duration,
  labelOf,
  optionsOf,
  plainChoices,
  table,
} from './elements';
import { type Asked, problemList, problemsOf } from './forms';
import { mountPage, type Page } from './layout';

const PATH = '/dashboard/usage';
const DAY_FIELDS = Object.keys(USAGE_ACTIONS.query_usage.body.shape);
const SPANS = [7, 30, 90, 365];

type Day = ReturnType<typeof usageOf>['results'][number];
type Measure = Exclude<keyof Day, 'site_id' | 'date'>;

export function mountUsagePage(app: Express, context: EmulatorContext): void {
  mountPage(app, PATH, (asked) => {
    try {
      return usagePage(context, asked);
    } catch (thrown) {
      const problems = problemsOf(thrown);
      if (!problems) throw thrown;
      asked.request.res?.status(400);
      return usagePage(context, { ...asked, query: {} }, problems);
    }
  });
}

function usagePage(context: EmulatorContext, page: Asked, problems: readonly string[] = []): Page {
  const { query } = page;
  const { siteIds } = context.seeds;
  const site = siteIds.find((id) => id === query.site);
  const asked = DAY_FIELDS.flatMap((name) => (query[name] ? [[name, query[name]] as const] : []));
  const used = usageOf(context, site === undefined ? siteIds : [site], Object.fromEntries(asked));
  const { start_date, end_date, results } = used;
  const measures = Object.keys(results[0] ?? {}).filter(
    (name): name is Measure => name !== 'site_id' && name !== 'date',
  );
  const added = (those: readonly Day[], date: string): Day => {
    const sums = measures.map((name) => [name, those.reduce((sum, day) => sum + day[name], 0)] as const);
    return { ...(Object.fromEntries(sums) as Record<Measure, number>), site_id: '', date };
  };
  const dates = [...new Set(results.map(({ date }) => date))];
  const days = dates.map((date) =>
    added(
      results.filter((day) => day.date === date),
      date,
    ),
  );
  const total = added(days, 'Total');
  const shown =
    measures.find((measure) => measure === query.show) ??
    (['deliveries', ...measures] as const).find((measure) => total[measure] > 0) ??
    'deliveries';
  const addressOf = (changed: Readonly<Record<string, string>>) =>
    `${PATH}?${new URLSearchParams({ start_date, end_date, ...(site !== undefined && { site }), show: shown, ...changed })}`;
  const tiles = measures.map(
    (measure) =>
      html`<li><a class="tile" href="${addressOf({ show: measure })}"${measure === shown && html` aria-current="true"`}><b>${valueText(measure, total[measure])}</b> <span>${nameOf(measure)}</span></a></li>`,
  );
  const now = context.clock.now();
  const spans = SPANS.map((count) => {
    const [first, last] = [dayOf(new Date(now.getTime() - (count - 1) * DAY_MS)), dayOf(now)];
    const isShown = start_date === first && end_date === last;
    return html`<li><a class="button outline small" href="${addressOf({ start_date: first, end_date: last })}"${isShown && html` aria-current="true"`}>${count === 365 ? 'A year' : `${count} days`}</a></li>`;
  });
  const dayField = (name: 'start_date' | 'end_date', label: string) =>
    html`<div class="field"><label for="${name}">${label}</label><input type="date" id="${name}" name="${name}" value="${used[name]}"></div>`;
  const sites = [{ value: '', label: 'All sites' }, ...plainChoices(siteIds)];
  const siteChoice =
    siteIds.length > 1 &&
    html`<div class="field"><label for="site">Site</label><select id="site" name="site">${optionsOf(sites, site ?? '')}</select></div>`;
  const span = `from ${start_date} to ${end_date}`;
  // The other days have no usage.
  const busy = days.filter((day) => measures.some((measure) => day[measure] > 0)).toReversed();
  const columns: Column<Day>[] = [
    ['Day', ({ date }) => html`<b>${date}</b>`],
    ...measures.map((measure): Column<Day> => [nameOf(measure), (day) => valueText(measure, day[measure])]),
  ];
  const caption = 'Usage, the latest day first. On days that are not listed, nothing was used.';
  return {
    intro: "Usage of each site and day, by the platform's clock in UTC.",
    content: html`${problemList(problems)}
      <form class="chooser" action="${PATH}"><input type="hidden" name="show" value="${shown}">
        ${dayField('start_date', 'First day')}${dayField('end_date', 'Last day')}${siteChoice}<button class="outline">Show</button>
        <ul role="list" class="spans" aria-label="The latest days">${spans}</ul></form>
      <ul role="list" class="tiles" aria-label="Totals ${span}">${tiles}</ul>
      ${
        busy.length === 0
          ? html`<div class="empty"><p>Nothing was used in these days. <a href="/dashboard/media#upload-media">Upload a media</a>, or ask for one as a player does.</p></div>`
          : html`<section class="card" aria-labelledby="plot-title"><h2 id="plot-title">${nameOf(shown)}, day by day</h2>
        ${plot(`${nameOf(shown)} ${span}`, days, shown)}
        ${disclosure('figures', 'the figures', html`<div class="figures">${table(caption, columns, [total, ...busy], undefined)}</div>`)}
      </section>`
      }`,
  };
}

function nameOf(measure: Measure): string {
  return labelOf(measure.replace(/_(?:bytes|seconds)$/, ''));
}

function valueText(measure: Measure, value: number): string {
  if (measure.endsWith('_bytes')) return bytes(value);
  return measure.endsWith('_seconds') ? duration(value) : String(value);
}

const HEIGHT = 100;

/** Bars over days. The words are outside the picture, which is stretched; the table is for readers who can't see it. */
function plot(title: string, days: readonly Day[], shown: Measure): Html {
  const write = (value: number) => valueText(shown, value);
  const highest = days.reduce((before, day) => (day[shown] > before[shown] ? day : before));
  const top = roundUp(Math.max(highest[shown], 1), shown.endsWith('_seconds'));
  const bar = (day: Day, place: number) => {
    const height = Math.round((HEIGHT * 1000 * day[shown]) / top) / 1000;
    // The rectangle of a day is wide enough to be pointed at, however low its bar is.
    return html`<g><title>${day.date}: ${write(day[shown])}</title><rect class="plot-day" x="${place}" y="0" width="1" height="${HEIGHT}"/><rect class="plot-bar" x="${place + 0.1}" y="${HEIGHT - height}" width="0.8" height="${height}"/></g>`;
  };
  const middle = days.length > 2 && html`<span>${days[Math.floor(days.length / 2)]?.date}</span>`;
  return html`<div class="plot">
    <div class="plot-scale" aria-hidden="true"><span>${write(top)}</span><span>${write(top / 2)}</span><span>0</span></div>
    <svg class="plot-picture" viewBox="0 0 ${days.length} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title}. The most on one day: ${write(highest[shown])}, on ${highest.date}.">
      <path class="plot-lines" d="M0 0.5H${days.length}M0 ${HEIGHT / 2}H${days.length}M0 ${HEIGHT - 0.5}H${days.length}"/>
      ${days.map(bar)}
    </svg>
    <div class="plot-days" aria-hidden="true"><span>${days[0]?.date}</span>${middle}<span>${days.at(-1)?.date}</span></div>
  </div>`;
}

const CLOCK = [2, 10, 20, 60, 120, 600, 1200, 3600, 7200, 14_400, 43_200, 86_400];

/** The least value that is not below this one, and is round, as its half is: on a clock, or in decimal digits. */
function roundUp(value: number, isTime: boolean): number {
  const ofClock = isTime ? CLOCK.find((round) => round >= value) : undefined;
  if (ofClock !== undefined) return ofClock;
  const power = 10 ** Math.floor(Math.log10(value));
  // Counts have no halves.
  const factors = power === 1 ? [2, 4, 6, 8, 10] : [1, 2, 3, 4, 5, 6, 8, 10];
  return (factors.find((each) => each * power >= value) ?? 10) * power;
}
