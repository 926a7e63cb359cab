import type { Express } from 'express';
import { onlyMethods } from '../../../http/app';
import { type Content, type Html, html } from '../../../http/html';
import { type Addresses, addressesFor } from '../addresses';
import type { EmulatorContext } from '../context';
import { copyable, copyableAddress, facts, live, time } from './elements';
import { layout } from './layout';
import { nounFor } from './search';

const PATH = '/dashboard';

export function mountOverviewPage(app: Express, context: EmulatorContext): void {
  app
    .route(PATH)
    .get((request, response) => {
      response.send(
        layout({
          title: 'Overview',
          section: PATH,
          content: html`${live('counts', html`${counts(context)}${firstSteps(context)}`)}
            <section class="card" aria-labelledby="addresses-title"><h2 id="addresses-title">Addresses</h2>${addressFacts(addressesFor(context, request))}</section>
            <section class="card" aria-labelledby="account-title"><h2 id="account-title">Account</h2>${live('account', accountFacts(context))}</section>`,
        }),
      );
    })
    .all(onlyMethods('GET'));
}

/** What to begin with, while there is nothing. */
function firstSteps({ state }: EmulatorContext): Content {
  return [
    state.channels.all().length === 0 &&
      firstStep(
        'first-channel',
        'Begin with a channel',
        'Then stream to it with OBS, ffmpeg or a simulated encoder: the channel’s page has the address and the commands.',
        html`<a class="button button-main" href="/dashboard/channels#new-channel">New channel</a>`,
      ),
    state.media.all().length === 0 &&
      firstStep(
        'first-media',
        'Or with a media',
        'Upload a video or an audio file. It becomes ready by itself, and its page has everything that players ask for.',
        html`<a class="button button-main" href="/dashboard/media#new-media">New media</a>`,
      ),
  ];
}

function firstStep(id: string, title: string, says: string, link: Html): Html {
  return html`<section class="card first" aria-labelledby="${id}"><div><h2 id="${id}">${title}</h2><p>${says}</p></div>${link}</section>`;
}

function counts({ state, webhooks }: EmulatorContext): Html {
  const channels = state.channels.all();
  const active = channels.filter(({ status }) => status === 'active').length;
  const tile = (path: string, count: number, one: string, many: string) =>
    html`<li><a class="tile" href="/dashboard/${path}"><b>${count}</b> <span>${nounFor(count, { one, many })}</span></a></li>`;
  return html`<ul class="tiles" aria-label="What there is">
    ${tile('channels', channels.length, 'channel', 'channels')}
    ${tile('channels?state=active', active, 'active now', 'active now')}
    ${tile('events', state.events.all().length, 'event', 'events')}
    ${tile('media', state.media.all().length, 'media', 'media')}
    ${tile('playlists', state.playlists.all().length, 'playlist', 'playlists')}
    ${tile('players', state.players.all().length, 'player', 'players')}
    ${tile('webhooks', webhooks.list().length, 'webhook', 'webhooks')}
    ${tile('credentials', state.credentials.list().length, 'credential', 'credentials')}
  </ul>`;
}

function addressFacts({ origin, rtmp, control, embedScript }: Addresses): Html {
  const off = (why: string) => html`<span class="muted">${why}</span>`;
  return facts([
    ['Management API', copyableAddress('address-api', 'address of the management API', `${origin}/v2`)],
    ['Management API v1', copyableAddress('address-v1', 'address of the management API v1', `${origin}/v1`)],
    [
      'RTMP ingest',
      rtmp === undefined
        ? off('off: EMULATOR_RTMP_PORT=off')
        : copyableAddress('address-rtmp', 'address of the RTMP ingest', rtmp),
    ],
    ['Delivery', copyableAddress('address-delivery', 'address of delivery', origin)],
    ['Embed script', copyableAddress('address-embed', 'address of the embed script', embedScript)],
    [
      'Key provider',
      copyableAddress('address-provider', 'address of the key provider', `${origin}/keyprovider`),
    ],
    [
      'Configuration service',
      copyableAddress(
        'address-config',
        'address of the configuration service',
        `${origin}/config/v1/clients`,
      ),
    ],
    [
      'Control port',
      control === undefined
        ? off('a free port, which the log names')
        : copyableAddress('address-control', 'address of the control port', control),
    ],
  ]);
}

function accountFacts({ seeds, clock }: EmulatorContext): Html {
  const sites = seeds.siteIds.map((id) => copyable(`site-${id}`, `id of site ${id}`, id));
  return facts([
    [sites.length === 1 ? 'Site' : 'Sites', sites],
    ['Platform time', time(clock.now())],
  ]);
}
