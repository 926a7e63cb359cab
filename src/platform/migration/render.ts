import { jsonText, shellWord } from '../../terminal/text';
import { isObject, type Json, type JsonObject } from './mapping/values';
import type { V2Call } from './migrate-call';

export const CLIENTS = ['python', 'php'] as const;
export type Client = (typeof CLIENTS)[number];

export const V2_ADDRESS = 'https://api.jwplayer.com';

/** A call as a command for a POSIX shell; the secret is read from the variable `V2_API_SECRET` there. */
export function asCurl({ method, path, query, headers, body }: V2Call, address = V2_ADDRESS): string {
  // Else curl takes the braces of a placeholder for a pattern.
  const url = `${path}${queryText(query)}`;
  const plain = url.includes('{') ? ' -g' : '';
  const words = [method === 'GET' ? `curl${plain}` : `curl${plain} -X ${method}`];
  words[0] += ` ${shellWord(`${address}${url}`)}`;
  for (const [name, value] of Object.entries(headers)) {
    // The shell must replace the variable, and the value contains nothing else to escape.
    words.push(`-H ${value.includes('$') ? `"${name}: ${value}"` : shellWord(`${name}: ${value}`)}`);
  }
  if (body !== undefined) words.push(`--data ${shellWord(jsonText(body))}`);
  return words.join(' \\\n  ');
}

function queryText(query: Readonly<Record<string, string>>): string {
  // Placeholders must stay readable.
  const text = new URLSearchParams(query).toString().replaceAll(/%7B([\w.+-]+)%7D/g, '{$1}');
  return text === '' ? '' : `?${text}`;
}

/** Uses `request` of a released client where it has no method for the call. */
export function asClientLine(call: V2Call, client: Client): string {
  return client === 'python' ? asPython(call) : asPhp(call);
}

/** `/v2/sites/S/media/M/`, in its parts. The released clients put ids into the path as they are given, so encoded. */
const PATH = /^\/v2\/sites\/([^/]+)\/([^/]+)\/?(?:([^/]+)\/?(?:([^/]+)\/?(?:([^/]+)\/?)?)?)?$/;

const VERBS: Readonly<Record<string, string>> = {
  'GET 0': 'list',
  'POST 0': 'create',
  'GET 1': 'get',
  'PATCH 1': 'update',
  'DELETE 1': 'delete',
};

/** Of the resources here, the released Python client has media alone. */
function asPython({ method, path, query, body }: V2Call): string {
  const [, site = '', collection, media, ...rest] = PATH.exec(path) ?? [];
  const isReupload = rest[0] === 'reupload';
  const verb = isReupload ? 'reupload' : VERBS[`${method} ${media === undefined ? 0 : 1}`];
  const isKnown = collection === 'media' && verb !== undefined && (rest[0] === undefined || isReupload);
  const ids = [`site_id=${python(site)}`, ...(media === undefined ? [] : [`media_id=${python(media)}`])];
  const given = [
    ...(isKnown ? ids : [python(method), python(path)]),
    ...(body !== undefined ? [`body=${python(body)}`] : []),
    ...(Object.keys(query).length > 0 ? [`query_params=${python(query)}`] : []),
  ];
  return `jwplatform_client.${isKnown ? `Media.${verb}` : 'request'}(${given.join(', ')})`;
}

function python(value: Json | undefined): string {
  if (value === undefined || value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
  if (!isObject(value)) return jsonText(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `${jsonText(name)}: ${python(each)}`)
    .join(', ')}}`;
}

const PHP_BELOW_MEDIA: Readonly<Record<string, string>> = {
  originals: 'Original',
  media_renditions: 'MediaRendition',
  text_tracks: 'TextTrack',
};

/**
 * The released PHP client forgets the site in the paths of players, thumbnails and the list of playlists, and can't send
 * a query: such calls go through its `request`, with the query in the path.
 */
function asPhp(call: V2Call): string {
  const { method, path, query, body } = call;
  const request = { name: 'request', values: [method, `${path}${queryText(query)}`] };
  const { name, values } = phpMethod(call) ?? request;
  const given = [...values, ...(body === undefined ? [] : [body])].map(php);
  return `$jwplatform_client->${name}(${given.join(', ')});`;
}

function phpMethod({ method, path, query }: V2Call): { name: string; values: string[] } | undefined {
  if (Object.keys(query).length > 0) return undefined;
  const [, site = '', collection = '', first = '', second = '', third = ''] = PATH.exec(path) ?? [];
  if (['remove_tag', 'rename_tag', 'query_usage'].includes(collection)) {
    return { name: `Site->${collection}`, values: [site] };
  }
  if (collection === 'playlists' && (first.endsWith('_playlist') || second.endsWith('_playlist'))) {
    const [type, values] = second === '' ? [first, [site]] : [second, [site, first]];
    const verb = VERBS[`${method} ${values.length - 1}`];
    return verb === undefined ? undefined : { name: `Playlist->${pascal(type)}->${verb}`, values };
  }
  if (collection !== 'media') return undefined;
  if (second === 'reupload') return { name: 'Media->reupload', values: [site, first] };
  const below = PHP_BELOW_MEDIA[second];
  const verb = VERBS[`${method} ${(below ? third : first) === '' ? 0 : 1}`];
  if (verb === undefined || (second !== '' && !below)) return undefined;
  const values = [site, first, third].filter((id) => id !== '');
  return { name: below ? `Media->${below}->${verb}` : `Media->${verb}`, values };
}

const pascal = (name: string) =>
  name.replaceAll(/(?:^|_)([a-z])/g, (_whole, letter: string) => letter.toUpperCase());

function php(value: Json | undefined): string {
  if (value === undefined || value === null) return 'null';
  if (typeof value === 'string') return phpText(value);
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `[${value.map(php).join(', ')}]`;
  const entries = Object.entries(value as JsonObject);
  // An empty array would become [] in JSON.
  if (entries.length === 0) return 'new stdClass()';
  return `[${entries.map(([name, each]) => `${phpText(name)} => ${php(each)}`).join(', ')}]`;
}

/** Single quotes, in which PHP reads nothing but `\\` and `\'`; with control characters, double ones. */
function phpText(text: string): string {
  if (!/\p{C}/u.test(text)) return `'${text.replaceAll(/[\\']/g, '\\$&')}'`;
  const inner = text.replaceAll(/[\\"$]/g, '\\$&');
  return `"${inner.replaceAll(/\p{C}/gu, (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`)}"`;
}
