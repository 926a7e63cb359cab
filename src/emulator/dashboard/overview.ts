import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import { type Html, html } from '../../http/html';
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
          content: html`${live('counts', html`${counts(context)}${context.state.channels.all().length === 0 && FIRST_STEP}`)}
            <section class="card" aria-labelledby="addresses-title"><h2 id="addresses-title">Addresses</h2>${addressFacts(addressesFor(context, request))}</section>
            <section class="card" aria-labelledby="account-title"><h2 id="account-title">Account</h2>${live('account', accountFacts(context))}</section>`,
        }),
      );
    })
    .all(onlyMethods('GET'));
}

const FIRST_STEP = html`<section class="card first" aria-labelledby="first-title">
  <div><h2 id="first-title">Begin with a channel</h2>
  <p>Then stream to it with OBS, ffmpeg or a simulated encoder: the channel’s page has the address and the commands.</p></div>
  <a class="button button-main" href="/dashboard/channels#new-channel">New channel</a>
</section>`;

function counts({ state, webhooks }: EmulatorContext): Html {
  const channels = state.channels.all();
  const active = channels.filter(({ status }) => status === 'active').length;
  const tile = (path: string, count: number, one: string, many: string) =>
    html`<li><a class="tile" href="/dashboard/${path}"><b>${count}</b> <span>${nounFor(count, { one, many })}</span></a></li>`;
  return html`<ul class="tiles" aria-label="What there is">
    ${tile('channels', channels.length, 'channel', 'channels')}
    ${tile('channels?state=active', active, 'active now', 'active now')}
    ${tile('events', state.events.all().length, 'event', 'events')}
    ${tile('events?state=ended', state.media.all().length, 'replay or clip', 'replays and clips')}
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
