import type { Express } from 'express';
import { html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { PLAYER } from '../resources/players';
import { time } from './elements';
import { mountResourcePages } from './resource-pages';

const FIELDS = { metadata: PLAYER.metadata, relationships: PLAYER.relationships };
const OPTIONS_SHOWN = 4;

export function mountPlayerPages(app: Express, context: EmulatorContext): void {
  const { library, state } = context;
  mountResourcePages(app, context, {
    noun: { one: 'player', many: 'players' },
    intro: 'The look and the behaviour of a player. Its setup configuration takes any option of the player.',
    store: state.players,
    nameOf: ({ metadata: { name } }) => (name.trim() === '' ? 'Unnamed player' : name),
    columns: () => [
      ['Release channel', ({ metadata }) => metadata.release_channel],
      ['Options', ({ metadata }) => optionsIn(Object.keys(metadata.setup_config))],
      ['Last change', ({ lastModified }) => time(lastModified)],
    ],
    hint: 'name, id or option',
    texts: ({ id, siteId, metadata: { name, release_channel, setup_config } }) => [
      name,
      id,
      siteId,
      release_channel,
      ...Object.keys(setup_config),
    ],
    newForm: FIELDS,
    calls: () => library.players,
    fields: () => FIELDS,
    farewell: ['Pages that embed it show nothing any more.'],
  });
}

function optionsIn(options: readonly string[]) {
  const more = options.length - OPTIONS_SHOWN;
  if (options.length === 0) return html`<span class="muted">none</span>`;
  return `${options.slice(0, OPTIONS_SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
