import type { Express } from 'express';
import { onlyMethods } from '../../../http/app';
import { type Html, html } from '../../../http/html';
import { addressesFor } from '../addresses';
import type { EmulatorContext } from '../context';
import { type Client, clientRecord } from '../upstreams/config-service';
import { CPIX_PATH, SPEKE_PATHS } from '../upstreams/cpix-provider';
import { KEY_ANSWERS } from '../upstreams/key-provider';
import { address, copyableAddress, copyableLines, disclosure, facts, secret } from './elements';
import { layout } from './layout';

const PATH = '/dashboard/clients';

const SYSTEMS: Readonly<Record<string, string>> = {
  widevine: 'Widevine',
  playready: 'PlayReady',
  fairplay: 'FairPlay',
};

/** The key provider as other services speak, by the values of the sidecar's PACKAGERDRMAPI_KEYPROVIDERPROTOCOL. */
const PROTOCOLS = [
  { id: 'speke1', title: 'SPEKE v1', path: pathOf(SPEKE_PATHS.speke1) },
  { id: 'speke2', title: 'SPEKE v2', path: pathOf(SPEKE_PATHS.speke2) },
  { id: 'cpix', title: 'CPIX by GET', path: pathOf(CPIX_PATH) },
];

/** The path of a client, with the content id as the sidecar's variable has it. */
function pathOf(pattern: string): (client: string) => string {
  return (client) => pattern.replace(':client', () => client).replace(':contentId', '{contentId}');
}

/** The accounts of the key provider, from which the key-file API takes its keys. */
export function mountClientsPage(app: Express, context: EmulatorContext): void {
  app
    .route(PATH)
    .get((request, response) => {
      const { origin } = addressesFor(context, request);
      response.send(
        layout({
          title: 'Key provider',
          section: PATH,
          intro: 'A client is a DRM account. The key-file API fetches keys with its name and its API key.',
          content: [...context.clients.values()].map((client) => clientCard(client, origin)),
        }),
      );
    })
    .all(onlyMethods('GET'));
}

function clientCard(client: Client, origin: string): Html {
  const { name, apiKey, sharedSecret } = client;
  const config = `${origin}/config/v1/clients`;
  const provider = `${origin}/keyprovider`;
  const curl = `curl -sS ${provider}/cenc/${name}/my-content \\\n  -H 'API-KEY: ${apiKey.replaceAll("'", "'\\''")}'`;
  const { drm_providers, license_urls } = clientRecord(client);
  const systems = drm_providers.map(
    (system) => html`<li><b>${SYSTEMS[system] ?? system}</b> ${address(license_urls[system] ?? '')}</li>`,
  );
  return html`<section class="card" aria-labelledby="client-${name}"><h2 id="client-${name}">${name}</h2>
    ${facts([
      ['API key', secret(`api-key-${name}`, `API key of ${name}`, apiKey)],
      ['Shared secret', secret(`shared-secret-${name}`, `shared secret of ${name}`, sharedSecret)],
      ['DRM systems', html`<ul class="plain">${systems}</ul>`],
      [
        'Configuration service',
        copyableAddress(`config-${name}`, 'address of the configuration service', config),
      ],
      ['Key provider', copyableAddress(`provider-${name}`, 'address of the key provider', provider)],
      ['Kinds of answer', Object.keys(KEY_ANSWERS).join(', ')],
      ...PROTOCOLS.map(({ id, title, path }): [string, Html] => [
        title,
        copyableAddress(`${id}-${name}`, `address for ${title}`, `${origin}${path(name)}`),
      ]),
    ])}
    ${disclosure(
      `example-${name}`,
      'an example call, with the API key',
      html`${copyableLines(`curl-${name}`, 'Example call', curl)}
        <p class="hint">The answer is an envelope that only the shared secret opens.</p>`,
    )}
  </section>`;
}
