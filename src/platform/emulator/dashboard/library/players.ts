import type { Express } from 'express';
import { onlyMethods } from '../../../../http/app';
import { HttpError } from '../../../../http/errors';
import { type Content, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import type { Player } from '../../library/players';
import { viewOf } from '../../resources/resource-routes';
import { PLAYER } from '../../resources/site-table';
import { confirmedAction, copyable, facts, live, table, time } from '../elements';
import { FormBody, form, type ListView, linkToForm, listAndForm, siteField } from '../forms';
import { layout } from '../layout';
import { type Searchable, search } from '../search';
import { attempt, formOf, readFields, readResourceForm } from './resource-form';
import { inputsOf } from './resource-inputs';

const PATH = '/dashboard/players';

const FIELDS = { ...PLAYER.metadata, ...PLAYER.relationships };

/** The pages of players. */
export function mountPlayerPages(app: Express, context: EmulatorContext): void {
  const { players } = context.library;

  app
    .route(PATH)
    .get(({ query }, response) => {
      response.send(playersPage(context, { query, sent: new FormBody(), problems: [] }));
    })
    .post(readResourceForm, async (request, response) => {
      const sent = new FormBody(request.body);
      const siteId = sent.text('site');
      const { body, problems: unread } = readPlayer(sent);
      const known = context.seeds.siteIds.includes(siteId) ? [] : ['The account has no such site.'];
      let made: object = {};
      const problems = await attempt([...known, ...unread], async () => {
        made = await players.create({ siteId }, body, viewOf(context, request));
      });
      if (problems.length > 0) {
        response.status(400).send(playersPage(context, { query: {}, sent, problems }));
        return;
      }
      response.redirect(303, `${PATH}/${'id' in made ? made.id : ''}?done=player-created`);
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route(`${PATH}/:playerId`)
    .get((request, response) => {
      const player = playerOf(context, request.params.playerId);
      response.send(playerPage(player, { sent: filled(player), problems: [], done: request.query.done }));
    })
    .post(readResourceForm, async (request, response) => {
      const player = playerOf(context, request.params.playerId);
      const sent = new FormBody(request.body);
      const { body, problems: unread } = readPlayer(sent);
      const ids = { siteId: player.siteId, playerId: player.id };
      const problems = await attempt(unread, () => players.update(ids, body, viewOf(context, request)));
      if (problems.length > 0) response.status(400).send(playerPage(player, { sent, problems }));
      else response.redirect(303, `${PATH}/${player.id}?done=player-saved`);
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route(`${PATH}/:playerId/delete`)
    .post((request, response) => {
      const { siteId, id } = playerOf(context, request.params.playerId);
      players.remove({ siteId, playerId: id });
      response.redirect(303, `${PATH}?done=player-deleted`);
    })
    .all(onlyMethods('POST'));
}

function playerOf({ state }: EmulatorContext, id: string): Player {
  const player = state.players.find(id);
  if (player) return player;
  const description = 'There is no player with this id. It may have been deleted.';
  throw new HttpError(404, { code: 'not_found', description });
}

function filled({ metadata, relationships }: Player): FormBody {
  return formOf(FIELDS, { ...metadata, ...relationships });
}

function readPlayer(sent: FormBody) {
  const metadata = readFields(PLAYER.metadata, sent);
  const relationships = readFields(PLAYER.relationships, sent);
  return {
    body: { metadata: metadata.given, relationships: relationships.given },
    problems: [...metadata.problems, ...relationships.problems],
  };
}

function nameOf({ metadata: { name } }: Player): string {
  return name.trim() === '' ? 'Unnamed player' : name;
}

const PLAYERS: Searchable<Player> = {
  path: PATH,
  noun: { one: 'player', many: 'players' },
  hint: 'name, id or option',
  texts: ({ id, siteId, metadata: { name, release_channel, setup_config } }) => [
    name,
    id,
    siteId,
    release_channel,
    ...Object.keys(setup_config),
  ],
  filters: [],
  empty: html`<p>There is no player yet. Make one with the form below, or with the management API.</p>`,
};

function playersPage({ state, seeds }: EmulatorContext, { query, sent, problems }: ListView): string {
  const found = search(state.players.all(), query, PLAYERS);
  const list = table({
    caption: 'Players',
    columns: ['Player', 'Release channel', 'Options', 'Last change'],
    rows: found.items.map((player) => rowOf(player, seeds.siteIds.length > 1)),
    empty: found.none,
  });
  return layout({
    title: 'Players',
    section: PATH,
    aside: linkToForm('new-player', 'New player'),
    intro: 'How a player looks and behaves. Any option of the player may stand in its setup configuration.',
    content: listAndForm(
      html`${found.form}${live('players', html`${found.summary}${list}${found.links}`)}`,
      form({
        id: 'new-player',
        title: 'New player',
        path: PATH,
        submit: 'Create player',
        problems,
        fields: html`${inputsOf(FIELDS, sent, 'player')}${siteField(seeds.siteIds, sent.text('site'))}`,
      }),
      problems,
    ),
    scripts: ['forms'],
    done: query.done,
  });
}

const OPTIONS_SHOWN = 4;

function rowOf(player: Player, showSite: boolean): Content[] {
  const { id, siteId, metadata, lastModified } = player;
  const options = Object.keys(metadata.setup_config);
  const more = options.length - OPTIONS_SHOWN;
  return [
    html`<a class="name" href="${PATH}/${id}" dir="auto">${nameOf(player)}</a><span class="sub"><code>${id}</code>${
      showSite && html` · site <code>${siteId}</code>`
    }</span>`,
    metadata.release_channel,
    options.length === 0
      ? html`<span class="muted">none</span>`
      : html`${options.slice(0, OPTIONS_SHOWN).join(', ')}${more > 0 && ` and ${more} more`}`,
    time(lastModified),
  ];
}

interface PlayerView {
  readonly sent: FormBody;
  readonly problems: readonly string[];
  readonly done?: unknown;
}

function playerPage(player: Player, { sent, problems, done }: PlayerView): string {
  const path = `${PATH}/${player.id}`;
  return layout({
    title: nameOf(player),
    above: { path: PATH, label: 'Players' },
    section: PATH,
    content: html`
      ${form({ id: 'player', title: 'Settings', path, submit: 'Save player', problems, fields: inputsOf(FIELDS, sent, 'player') })}
      <section class="card" aria-labelledby="facts-title"><h2 id="facts-title">Facts</h2>${facts([
        ['Player id', copyable('player-id', 'player id', player.id)],
        ['Site', html`<code>${player.siteId}</code>`],
        ['Created', time(player.created)],
        ['Last change', time(player.lastModified)],
      ])}</section>
      <section class="card" aria-labelledby="delete-title"><h2 id="delete-title">Delete this player</h2>
        <p>Pages that embed it show nothing any more.</p>
        ${confirmedAction(`${path}/delete`, 'Delete', nameOf(player), 'This can’t be undone.')}
      </section>`,
    scripts: ['forms'],
    done,
  });
}
