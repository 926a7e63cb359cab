import fc from 'fast-check';
import { ConfigError } from '../../src/http/config';
import { addressFault, fillAddress } from '../../src/provider/upstream';
import { readSidecarConfig } from '../../src/sidecar/config';
import { faultsOf } from '../support/faults-of';

function configOf(protocol: string | undefined, url: string) {
  const env = {
    PACKAGERDRMAPI_APIKEY: 'the-key-of-this-service',
    PACKAGERDRMAPI_KEYPROVIDERURL: url,
    ...(protocol !== undefined && { PACKAGERDRMAPI_KEYPROVIDERPROTOCOL: protocol }),
  };
  return readSidecarConfig(env, () => '');
}

describe('the address of the key provider', () => {
  const PLAIN = 'must be an http:// or https:// address without user, query, fragment or space';
  const ANY = 'must be an http:// or https:// address without user, fragment or space';
  const JSON_HAS =
    'has a placeholder; the protocol json appends client and content id to the address, so leave it out';
  const CPIX_HAS_NOT = 'must have {contentId} or {kid} in its path or its query with the protocol cpix';
  const ORIGIN = 'must not have a placeholder before its path: a request would choose the server';
  const PLACE = 'has a placeholder other than {client}, {contentId} and {kid}';
  const IN_BODY =
    'has {kid}, which is for the protocol cpix: the others ask for a key id in the body; leave it out';

  it.each([
    [undefined, 'https://keys.example/v1/'],
    ['json', 'https://keys.example'],
    ['cpix', 'https://keys.example/cpix/{contentId}'],
    ['cpix', 'https://keys.example/cpix?id={contentId}&client={client}&scheme=cenc'],
    ['cpix', 'https://keys.example/KeyGenerator/cpix.aspx?k={kid}&u=me&p=word'],
    ['speke1', 'https://keys.example/speke'],
    ['speke2', 'https://keys.example/copyProtection/{client}?stage=live&c={contentId}'],
  ])('is taken by the protocol %s: %s', (protocol, url) => {
    const { keyProviderUrl, keyProviderProtocol } = configOf(protocol, url);
    expect([keyProviderUrl, keyProviderProtocol ?? 'json']).toEqual([url, protocol ?? 'json']);
  });

  it.each([
    [undefined, 'https://keys.example/?a=1', PLAIN],
    [undefined, 'https://keys.example/{client}', JSON_HAS],
    ['json', 'https://keys.example/{contentId}/{client}', JSON_HAS],
    ['json', 'https://keys.example/{kid}', JSON_HAS],
    ['cpix', 'https://keys.example/cpix', CPIX_HAS_NOT],
    ['cpix', 'https://keys.example/cpix/{client}', CPIX_HAS_NOT],
    ['cpix', 'https://{kid}.example/', ORIGIN],
    ['speke2', 'https://keys.example/{kid}', IN_BODY],
    ['cpix', 'https://keys.example/cpix/{contentid}', PLACE],
    ['speke2', 'https://keys.example/{Client}', PLACE],
    ['speke2', 'https://{client}.example/', ORIGIN],
    ['speke2', 'https://user:secret@keys.example/', ANY],
    ['speke1', 'https://keys.example/#top', ANY],
    ['speke1', 'ftp://keys.example/', ANY],
    ['cpix', 'https://keys.example:{contentId}/', ANY],
  ])('is refused by the protocol %s: %s', (protocol, url, fault) => {
    expect(faultsOf(() => configOf(protocol, url))).toEqual([`PACKAGERDRMAPI_KEYPROVIDERURL: ${fault}`]);
  });

  it('is needed by all that is said of how it is asked', () => {
    const of = (env: Readonly<Record<string, string>>) => () =>
      readSidecarConfig({ PACKAGERDRMAPI_APIKEY: 'the-key-of-this-service', ...env }, () => '');
    const protocol = 'PACKAGERDRMAPI_KEYPROVIDERPROTOCOL';
    const file = 'PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE';
    const fault = 'is for the key provider; set PACKAGERDRMAPI_KEYPROVIDERURL, too, or leave it out';
    const both = new ConfigError([`${protocol}: ${fault}`, `${file}: ${fault}`]);
    expect(of({ [protocol]: 'speke2', [file]: 'headers.txt' })).toThrow(both);
    expect(of({ [protocol]: 'json', [file]: '' })).not.toThrow();
  });

  it('comes with files for TLS: an authority alone, and a certificate with its key', () => {
    const [ca, cert, key] = ['CA', 'CERT', 'KEY'].map((name) => `PACKAGERDRMAPI_UPSTREAMTLS${name}`) as [
      string,
      string,
      string,
    ];
    const read = (env: Readonly<Record<string, string>>) =>
      readSidecarConfig({ PACKAGERDRMAPI_APIKEY: 'the-key-of-this-service', ...env }, () => '').upstreamTls;
    expect(read({})).toBeUndefined();
    expect(read({ [ca]: '/ca' })).toEqual({ authorities: '/ca' });
    expect(read({ [cert]: '/crt', [key]: '/key' })).toEqual({ client: { certificate: '/crt', key: '/key' } });
    const why = 'a client certificate needs both; set the other one, too, or none';
    expect(() => read({ [cert]: '/crt' })).toThrow(new ConfigError([`${cert} and ${key}: ${why}`]));
  });

  it('comes with defaults for systems and PlayReady, except by the protocol json', () => {
    const env = {
      PACKAGERDRMAPI_APIKEY: 'the-key-of-this-service',
      PACKAGERDRMAPI_KEYPROVIDERURL: 'https://keys.example',
      PACKAGERDRMAPI_KEYPROVIDERPROTOCOL: 'speke2',
      PACKAGERDRMAPI_KEYPROVIDERSYSTEMS: 'widevine, playready',
      PACKAGERDRMAPI_PLAYREADYLAURL: 'https://pr.example/rights',
    };
    const read = (other: Readonly<Record<string, string>>) => () =>
      readSidecarConfig({ ...env, ...other }, () => '');
    expect(read({})()).toMatchObject({
      keyProviderSystems: ['widevine', 'playready'],
      playReadyUrl: 'https://pr.example/rights',
    });
    const [systems, laurl] = ['PACKAGERDRMAPI_KEYPROVIDERSYSTEMS', 'PACKAGERDRMAPI_PLAYREADYLAURL'];
    const json = 'has no effect with the protocol json, whose answers have all systems; leave it out';
    expect(read({ PACKAGERDRMAPI_KEYPROVIDERPROTOCOL: '' })).toThrow(
      new ConfigError([`${systems}: ${json}`, `${laurl}: ${json}`]),
    );
    expect(read({ PACKAGERDRMAPI_KEYPROVIDERPROTOCOL: 'speke3' })).toThrow(
      new ConfigError([
        'PACKAGERDRMAPI_KEYPROVIDERPROTOCOL: must be one of json, cpix, speke1, speke2, speke21',
      ]),
    );
    expect(read({ [systems]: 'clearkey', [laurl]: 'skd://x' })).toThrow(
      new ConfigError([
        `${systems}: must be one of widevine, playready, fairplay`,
        `${laurl}: must be an address that starts with https:// or http://`,
      ]),
    );
  });

  it('is reported with an unknown protocol', () => {
    expect(faultsOf(() => configOf('speke', 'keys.example'))).toEqual([
      `PACKAGERDRMAPI_KEYPROVIDERURL: ${ANY}`,
      'PACKAGERDRMAPI_KEYPROVIDERPROTOCOL: must be one of json, cpix, speke1, speke2, speke21',
    ]);
  });

  it('has what a request names put in its places, percent-encoded, and keeps its server', () => {
    expect(
      fillAddress('https://a/{client}/{contentId}?again={contentId}', { client: 'x.y', contentId: '1-2_3' }),
    ).toBe('https://a/x.y/1-2_3?again=1-2_3');
    const address = 'https://keys.example/a/{client}/b/{contentId}?c={contentId}';
    expect(addressFault('cpix', address)).toBeUndefined();
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, unit: 'grapheme' }),
        fc.string({ minLength: 1, unit: 'grapheme' }),
        (client, contentId) => {
          const filled = new URL(fillAddress(address, { client, contentId }));
          expect(filled.origin).toBe('https://keys.example');
          expect(filled.searchParams.get('c')).toBe(contentId);
        },
      ),
    );
  });
});
