import type { Express } from 'express';
import { onlyMethods } from '../../kernel/app';
import { type Html, html } from '../../kernel/html';
import type { EmulatorContext } from '../context';
import { type Addresses, addressesFor } from './addresses';
import { copyable, facts, live, time } from './elements';
import { layout } from './layout';

const PATH = '/dashboard';

export function mountOverviewPage(app: Express, context: EmulatorContext): void {
  app
    .route(PATH)
    .get((request, response) => {
      response.send(
        layout({
          title: 'Overview',
          section: PATH,
          content: html`${live('counts', counts(context))}
            <section class="card" aria-labelledby="addresses-title"><h2 id="addresses-title">Addresses</h2>${addressFacts(addressesFor(context, request))}</section>
            <section class="card" aria-labelledby="account-title"><h2 id="account-title">Account</h2>${live('account', accountFacts(context))}</section>`,
        }),
      );
    })
    .all(onlyMethods('GET'));
}

function counts({ state, webhooks }: EmulatorContext): Html {
  const channels = state.channels.all();
  const active = channels.filter(({ status }) => status === 'active').length;
  const tile = (path: string, count: number, name: string) =>
    html`<li><a class="tile" href="${path}"><b>${count}</b> <span>${name}</span></a></li>`;
  return html`<ul class="tiles" aria-label="What there is">
    ${tile('/dashboard/channels', channels.length, channels.length === 1 ? 'channel' : 'channels')}
    ${tile('/dashboard/channels', active, 'active now')}
    ${tile('/dashboard/events', state.events.all().length, 'events')}
    ${tile('/dashboard/events', state.media.all().length, 'replays and clips')}
    ${tile('/dashboard/webhooks', webhooks.list().length, 'webhooks')}
    ${tile('/dashboard/credentials', state.credentials.list().length, 'credentials')}
  </ul>`;
}

function addressFacts({ origin, rtmp, control, embedScript }: Addresses): Html {
  const off = (why: string) => html`<span class="muted">${why}</span>`;
  return facts([
    ['Management API', copyable('address-api', 'address of the management API', `${origin}/v2`)],
    [
      'RTMP ingest',
      rtmp === undefined
        ? off('off: EMULATOR_RTMP_PORT=off')
        : copyable('address-rtmp', 'address of the RTMP ingest', rtmp),
    ],
    ['Delivery', copyable('address-delivery', 'address of delivery', origin)],
    ['Embed script', copyable('address-embed', 'address of the embed script', embedScript)],
    ['Key provider', copyable('address-provider', 'address of the key provider', `${origin}/keyprovider`)],
    [
      'Configuration service',
      copyable('address-config', 'address of the configuration service', `${origin}/config/v1/clients`),
    ],
    [
      'Control port',
      control === undefined
        ? off('a free port, which the log names')
        : copyable('address-control', 'address of the control port', control),
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
