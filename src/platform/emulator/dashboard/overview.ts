import type { Express } from 'express';
import { type Content, type Html, html } from '../../../http/html';
import { type Addresses, addressesFor } from '../addresses';
import type { EmulatorContext } from '../context';
import { type Client, clientRecord } from '../upstreams/config-service';
import { CPIX_PATH, SPEKE_PATHS, STUDIO_PATHS } from '../upstreams/cpix-provider';
import { KEY_ANSWERS } from '../upstreams/key-provider';
import { channelState } from './channels';
import {
  address,
  card,
  copyable,
  copyableAddress,
  copyableLines,
  disclosure,
  type Fact,
  facts,
  live,
  secret,
  time,
} from './elements';
import type { PageRequest } from './forms';
import { credentialsFor, mountPage } from './layout';

export function mountOverviewPages(app: Express, context: EmulatorContext): void {
  mountPage(app, '/dashboard', (asked) => ({
    content: html`${live('counts', html`${counts(context, asked.request)}${firstSteps(context)}`)}
        ${card('addresses', 'Addresses', addressFacts(addressesFor(context, asked.request)))}
        ${card('account', 'Account', live('account-facts', accountFacts(context)))}`,
  }));
  mountPage(app, '/dashboard/clients', (asked) => ({
    intro: 'A client is a DRM account. The key-file API fetches keys with its name and its API key.',
    content: [...context.clients.values()].map((client) =>
      clientCard(client, addressesFor(context, asked.request).origin),
    ),
  }));
}

function firstSteps({ state }: EmulatorContext): Content {
  const step = (kind: string, title: string, says: string) =>
    html`<section class="card first" aria-labelledby="first-${kind}"><div><h2 id="first-${kind}">${title}</h2><p>${says}</p></div><a class="button" href="/dashboard/${kind === 'media' ? kind : `${kind}s`}#new">New ${kind}</a></section>`;
  const channel =
    "Then stream to it with OBS, ffmpeg or a simulated encoder: the channel's page has the address and the commands.";
  const media =
    'Upload a video or an audio file. It becomes ready automatically, and its page has all addresses for players.';
  return [
    state.channels.all().length === 0 && step('channel', 'Begin with a channel', channel),
    state.media.all().length === 0 && step('media', 'Or with a media', media),
  ];
}

function counts(context: EmulatorContext, request: PageRequest): Html {
  const { state } = context;
  const channels = state.channels.all();
  const states = channels.map((channel) => channelState(context, channel));
  const active = states.filter((each) => each === 'active').length;
  const refused = states.filter((each) => each === 'refused').length;
  const tiles: readonly [path: string, count: number, one: string, many?: string][] = [
    ['channels', channels.length, 'channel'],
    ['channels?state=active', active, 'active now', 'active now'],
    ['events', state.events.all().length, 'event'],
    ['media', state.media.all().length, 'media', 'media'],
    ['playlists', state.playlists.all().length, 'playlist'],
    ['players', state.players.all().length, 'player'],
    ['webhooks', state.webhooks.all().length, 'webhook'],
    ['credentials', credentialsFor(request, state).length, 'credential'],
  ];
  const problem =
    refused > 0 &&
    html`<p class="message" data-variant="danger"><a href="/dashboard/channels?state=refused">${refused} ${refused === 1 ? 'stream is' : 'streams are'} refused</a> by the packager: viewers have no picture. The page of the channel says why.</p>`;
  return html`${problem}<ul role="list" class="tiles" aria-label="Counts">${tiles.map(
    ([path, count, one, many = `${one}s`]) =>
      html`<li><a class="tile" href="/dashboard/${path}"><b>${count}</b> <span>${count === 1 ? one : many}</span></a></li>`,
  )}</ul>`;
}

function addressFacts({ origin, rtmp, control, embedScript }: Addresses): Html {
  const of = (name: string, text: string | undefined, otherwise = ''): Fact => [
    name,
    text === undefined
      ? html`<span class="muted">${otherwise}</span>`
      : copyableAddress(`address of ${name}`, text),
  ];
  return facts([
    of('Management API', `${origin}/v2`),
    of('Management API v1', `${origin}/v1`),
    of('RTMP ingest', rtmp, 'off: EMULATOR_RTMP_PORT=off'),
    of('Delivery', origin),
    of('Embed script', embedScript),
    of('Key provider', `${origin}/keyprovider`),
    of('Configuration service', `${origin}/config/v1/clients`),
    of('Control port', control, 'a free port, which the log names'),
  ]);
}

function accountFacts({ seeds, clock }: EmulatorContext): Html {
  const sites = seeds.siteIds.map((id) => copyable(`id of site ${id}`, id));
  return facts([
    [sites.length === 1 ? 'Site' : 'Sites', sites],
    ['Platform time', time(clock.now())],
  ]);
}

const SYSTEMS: Readonly<Record<string, string>> = {
  widevine: 'Widevine',
  playready: 'PlayReady',
  fairplay: 'FairPlay',
};

/** The key provider in other protocols, by the values of the sidecar's PACKAGERDRMAPI_KEYPROVIDERPROTOCOL. */
const PROTOCOLS = [
  ['SPEKE v1', SPEKE_PATHS.speke1],
  ['SPEKE v2', SPEKE_PATHS.speke2],
  ['CPIX by GET', CPIX_PATH],
  ['CPIX API of Studio DRM', STUDIO_PATHS.cpix],
] as const;

function clientCard(client: Client, origin: string): Html {
  const { name, apiKey, sharedSecret } = client;
  const provider = `${origin}/keyprovider`;
  const curl = `curl -sS ${provider}/cenc/${name}/my-content \\\n  -H 'API-KEY: ${apiKey.replaceAll("'", "'\\''")}'`;
  const { drm_providers, license_urls } = clientRecord(client);
  const systems = drm_providers.map(
    (system) => html`<li><b>${SYSTEMS[system] ?? system}</b> ${address(license_urls[system] ?? '')}</li>`,
  );
  const protocols = PROTOCOLS.map(([title, path]): Fact => {
    // The content id is in braces, as in the sidecar's variable.
    const text = `${origin}${path.replace(':client', () => name).replace(':contentId', '{contentId}')}`;
    return [title, copyableAddress(`address for ${title}`, text)];
  });
  const list = facts([
    ['API key', secret(`api-key-${name}`, `API key of ${name}`, apiKey)],
    ['Shared secret', secret(`shared-secret-${name}`, `shared secret of ${name}`, sharedSecret)],
    ['DRM systems', html`<ul role="list" class="plain">${systems}</ul>`],
    [
      'Configuration service',
      copyableAddress('address of the configuration service', `${origin}/config/v1/clients`),
    ],
    ['Key provider', copyableAddress('address of the key provider', provider)],
    ['Kinds of answer', Object.keys(KEY_ANSWERS).join(', ')],
    ...protocols,
  ]);
  const example = html`${copyableLines(`curl-${name}`, 'Example call', curl)}<p class="hint">The answer is an envelope that only the shared secret opens.</p>`;
  return card(
    `client-${name}`,
    name,
    html`${list}${disclosure(`example-${name}`, 'an example call, with the API key', example)}`,
  );
}
