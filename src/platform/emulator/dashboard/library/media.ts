import type { Express, Request } from 'express';
import { onlyMethods } from '../../../../http/app';
import { type Html, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import type { Media } from '../../library/media';
import { MEDIA } from '../../resources/media-table';
import { viewOf } from '../../resources/resource-routes';
import { duration, live, table, time } from '../elements';
import { FormBody, type ListView, linkToForm, listAndForm, problemList, siteField } from '../forms';
import { layout } from '../layout';
import { type Searchable, search } from '../search';
import { readSource, SOURCE } from './media-content';
import { mountMediaPage } from './media-page';
import { mediaName, publication, STATUS_CHOICES, statusPill } from './media-words';
import { attempt, readFields, readResourceForm } from './resource-form';
import { inputsOf } from './resource-inputs';
import { answerBegun, answerProblems, uploadZone } from './upload-zone';

const PATH = '/dashboard/media';

/** The pages of the media library. */
export function mountMediaPages(app: Express, context: EmulatorContext): void {
  app
    .route(PATH)
    .get(({ query }, response) => {
      response.send(mediaListPage(context, { query, sent: new FormBody(), problems: [] }));
    })
    .post(readResourceForm, async (request, response) => {
      const sent = new FormBody(request.body);
      const made = await createMedia(context, request, sent);
      if (made.problems.length > 0) {
        const view = { query: {}, sent, problems: made.problems };
        response.status(400).send(mediaListPage(context, view));
        return;
      }
      response.redirect(303, `${PATH}/${made.id}?done=media-created`);
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route(`${PATH}/upload`)
    .post(readResourceForm, async (request, response) => {
      const sent = new FormBody(request.body);
      const made = await createMedia(context, request, sent);
      const upload = context.state.media.find(made.id ?? '')?.upload;
      if (!upload || made.problems.length > 0) {
        answerProblems(response, made.problems);
        return;
      }
      const page = `${PATH}/${made.id}`;
      const { origin } = viewOf(context, request);
      answerBegun(response, { upload, origin, page, undo: `${page}/delete` });
    })
    .all(onlyMethods('POST'));

  mountMediaPage(app, context);
}

interface Made {
  readonly id: string | undefined;
  readonly problems: readonly string[];
}

/** What the form for a new media has beside the metadata. */
const { title: TITLE, ...MORE } = MEDIA.metadata;

async function createMedia(context: EmulatorContext, request: Request, sent: FormBody): Promise<Made> {
  const siteId = sent.text('site');
  const metadata = readFields({ title: TITLE, ...MORE }, sent);
  const source = readSource(sent);
  let id: string | undefined;
  const problems = await attempt(
    [
      ...(context.seeds.siteIds.includes(siteId) ? [] : ['The account has no such site.']),
      ...metadata.problems,
      ...source.problems,
    ],
    async () => {
      const body = { metadata: metadata.given, upload: source.upload };
      const made = await context.library.media.create({ siteId }, body, viewOf(context, request));
      id = 'id' in made ? String(made.id) : undefined;
    },
  );
  return { id, problems };
}

const MEDIA_LIST: Searchable<Media> = {
  path: PATH,
  noun: { one: 'media', many: 'media' },
  hint: 'title, id, tag or author',
  texts: ({ id, siteId, metadata: { title, author, external_id, tags } }) => [
    title,
    id,
    siteId,
    author ?? '',
    external_id ?? '',
    ...tags,
  ],
  filters: [
    {
      name: 'status',
      label: 'Status',
      unset: 'Any status',
      choices: STATUS_CHOICES,
      of: ({ status }) => status,
    },
    {
      name: 'type',
      label: 'Type',
      unset: 'Any type',
      choices: MEDIA.shown.media_type.schema.options.map((value) => ({ value, label: value })),
      of: ({ mediaType }) => mediaType,
    },
  ],
  empty: html`<p>There is no media yet. Drop a file below, or stream to a channel: its replay becomes one.</p>`,
};

function mediaListPage(context: EmulatorContext, view: ListView): string {
  const { state, seeds, clock } = context;
  const found = search(state.media.all(), view.query, MEDIA_LIST);
  const now = clock.now();
  const list = table({
    caption: 'Media',
    columns: ['Media', 'Status', 'Type', 'Duration', 'Viewers', 'Created'],
    rows: found.items.map((media) => [
      mediaName(context, media, { showSite: seeds.siteIds.length > 1 }),
      statusPill(media.status),
      media.mediaType,
      media.duration > 0 ? duration(media.duration) : html`<span class="muted">–</span>`,
      publication(media, now),
      time(media.created),
    ]),
    empty: found.none,
  });
  return layout({
    title: 'Media',
    section: PATH,
    aside: linkToForm('new-media', 'New media'),
    intro: 'Video and audio on demand: what was uploaded, and what was recorded from live events.',
    content: listAndForm(
      html`${found.form}${live('media', html`${found.summary}${list}${found.links}`)}`,
      newMedia(seeds.siteIds, view.sent, view.problems),
      view.problems,
    ),
    scripts: ['upload', 'forms'],
    done: view.query.done,
  });
}

function newMedia(sites: readonly string[], sent: FormBody, problems: readonly string[]): Html {
  const zone = uploadZone({
    id: 'upload-media',
    begin: `${PATH}/upload`,
    what: 'files',
    accept: 'video/*,audio/*',
    hint: 'Each becomes a media that is called like its file.',
    several: true,
    fields: siteField(sites, sent.text('site'), 'upload-site'),
  });
  const fields = html`
    ${inputsOf({ title: TITLE }, sent, 'new')}
    ${siteField(sites, sent.text('site'))}
    <details class="more"${isFilled(sent, SOURCE) && html` open`}><summary class="link">Fetch the content, or leave it where it is</summary><div class="fields">${inputsOf(SOURCE, sent, 'new')}</div></details>
    <details class="more"${isFilled(sent, MORE) && html` open`}><summary class="link">More metadata</summary><div class="fields">${inputsOf(MORE, sent, 'new')}</div></details>
    <p class="hint field-wide">Without an address to fetch the content from, the page of the media takes a file.</p>`;
  return html`<section class="card" id="new-media" aria-labelledby="new-media-title"><h2 id="new-media-title">New media</h2>
    ${zone}
    <h3 data-scripted>Or without a file of yours</h3>
    ${problemList(problems)}
    <form method="post" action="${PATH}" class="form"><div class="fields">${fields}</div><p><button class="button button-main">Create media</button></p></form>
  </section>`;
}

function isFilled(sent: FormBody, fields: object): boolean {
  return Object.keys(fields).some((name) => sent.text(name) !== '' || sent.text(`${name}.name`) !== '');
}
