import { parseXml, type XmlElement } from '../../src/drm/xml';
import { rawExchange } from './raw-http';

/** A key as a packager takes it. Bytes are in hex. */
export interface PulledKey {
  readonly keyId: string;
  readonly key: string;
  readonly iv: string | undefined;
  /** The data of each box, by its system id. */
  readonly boxes: Readonly<Record<string, string>>;
}

/** The key for a packager that pulls, or its log. */
export type Pulled = PulledKey | { readonly refused: string };

const hexOf = (base64: string) => Buffer.from(base64, 'base64').toString('hex');
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/**
 * nginx-vod-module, by its source (kaltura/nginx-vod-module, AGPL: `ngx_child_http_request.c`, `vod/udrm.c`): nginx asks by
 * HTTP/1.0, anything but 200 fails, the body must have the length that is announced and fit into 4096 bytes, and the first
 * object of its array has `key`, `key_id` and perhaps `pssh` and `iv`, all of a fixed length.
 */
export async function pullAsNginxVod(port: number, path: string, apiKey: string): Promise<Pulled> {
  const head = `GET ${path} HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\nx-api-key: ${apiKey}\r\n\r\n`;
  const answer = await rawExchange(port, head, /\r\n\r\n.*[\]}]\s*$/s);
  const [first = '', ...body] = answer.split('\r\n\r\n');
  const text = body.join('\r\n\r\n');
  if (!first.startsWith('HTTP/1.1 200 ')) return { refused: `upstream returned ${first.slice(9, 12)}` };
  const [, length] = /content-length: (\d+)/i.exec(first) ?? [];
  if (/transfer-encoding/i.test(first) || Number(length) !== text.length) return { refused: 'length' };
  if (text.length > 4096) return { refused: 'too big' };
  const [info] = JSON.parse(text) as readonly {
    key: string;
    key_id: string;
    iv?: string;
    pssh?: readonly { uuid: string; data: string }[];
  }[];
  if (!info || [info.key, info.key_id, info.iv ?? info.key].some((each) => hexOf(each).length !== 32))
    return { refused: 'invalid drm info' };
  const { key, key_id: keyId, iv, pssh = [] } = info;
  if (!pssh.every(({ uuid }) => UUID.test(uuid))) return { refused: 'uuid' };
  return {
    keyId: hexOf(keyId),
    key: hexOf(key),
    iv: iv && hexOf(iv),
    boxes: Object.fromEntries(pssh.map(({ uuid, data }) => [uuid, hexOf(data)])),
  };
}

interface ShakaOptions {
  /** `--protection_scheme` */
  readonly scheme: 'cenc' | 'cbcs';
  /** `--cpix_headers` */
  readonly headers: Readonly<Record<string, string>>;
  /** The file of `--cpix_request_file`, which is POSTed. */
  readonly request?: string;
}

/**
 * shaka-packager with `--enable_cpix_encryption`, by its source (BSD: `cpix_key_source.cc`, `cpix_parser.cc`), for a stream
 * without a label of its own: every key must be plain and of the scheme, systems name keys that are there, a `PSSH` is a
 * whole box of its system, no usage rule has filters of both kinds, and without rules there may be one key.
 */
export async function pullAsShaka(url: string, { scheme, headers, request }: ShakaOptions): Promise<Pulled> {
  const answer = await fetch(url, {
    ...(request !== undefined && { method: 'POST', body: request }),
    headers: { 'content-type': 'application/xml', ...headers },
  });
  if (!answer.ok) return { refused: `HTTP ${answer.status}` };
  const parsed = parseXml(await answer.text(), { characters: 1e6, namespaces: true });
  if (!parsed.ok || parsed.value.name !== 'CPIX') return { refused: 'no CPIX' };
  const all = (name: string, from: XmlElement = parsed.value): XmlElement[] =>
    from.children.flatMap((child) => [...(child.name === name ? [child] : []), ...all(name, child)]);
  const [key, ...others] = all('ContentKey');
  if (!key || (others.length > 0 && all('ContentKeyUsageRule').length === 0))
    return { refused: 'cannot be mapped to streams' };
  const isForAll = (rule: XmlElement) =>
    all('VideoFilter', rule).length > 0 && all('AudioFilter', rule).length > 0;
  if (all('ContentKeyUsageRule').some(isForAll)) return { refused: 'cannot match any stream' };
  const { kid = '', explicitIV, commonEncryptionScheme = scheme } = key.attributes;
  if (commonEncryptionScheme !== scheme) return { refused: 'Use a matching --protection_scheme' };
  const [plain] = all('PlainValue', key);
  if (!plain || hexOf(plain.text).length !== 32) return { refused: 'Invalid key size' };
  const boxes: Record<string, string> = {};
  for (const system of all('DRMSystem')) {
    const { kid: of, systemId = '' } = system.attributes;
    if (of !== kid) return { refused: 'references unknown key' };
    const [pssh] = all('PSSH', system);
    if (!pssh) continue;
    const box = Buffer.from(pssh.text, 'base64');
    const isWhole = box.readUInt32BE(0) === box.length && box.toString('latin1', 4, 8) === 'pssh';
    if (!isWhole || box.toString('hex', 12, 28) !== systemId.replaceAll('-', '').toLowerCase())
      return { refused: 'does not contain full PSSH boxes' };
    boxes[systemId] = box.toString('hex', 32);
  }
  return {
    keyId: kid.replaceAll('-', ''),
    key: hexOf(plain.text),
    iv: explicitIV && hexOf(explicitIV),
    boxes,
  };
}
