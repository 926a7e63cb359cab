import { JSONParser } from '@streamparser/json';
import type { V1Call } from '../migrate-call';
import {
  type FoundCall,
  looksLikeV1,
  parametersOf,
  readForm,
  readJsonForm,
  readUrl,
  UnreadableInput,
} from './found-call';

/** The hosts that answer v1, and those of the emulator. */
const HOSTS = /(?:jwplatform|jwplayer|bitsontherun|longtailvideo|emulator|localhost|127\.0\.0\.1|\[::1\])/i;

/** One entry of a HAR 1.2 is in memory at a time. @throws UnreadableInput when it is no such archive. */
export async function* callsOfHar(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<FoundCall> {
  const parser = new JSONParser({ paths: ['$.log.entries.*.request'], keepStack: false });
  let calls: FoundCall[] = [];
  parser.onValue = ({ value }) => void calls.push(...readRequest(value));
  let start = '';
  for await (const piece of pieces) {
    start ||= Buffer.from(piece)
      .toString()
      .replace(/^\ufeff/, '')
      .trim();
    try {
      if (!/^(?:\{|$)/.test(start)) throw new Error(start);
      parser.write(piece);
    } catch {
      throw new UnreadableInput('is no HAR file; export it as HAR 1.2');
    }
    yield* calls;
    calls = [];
  }
  if (!parser.isEnded) throw new UnreadableInput('ends in the middle; export it again');
}

type PostData = { readonly mimeType?: unknown; readonly text?: unknown; readonly params?: unknown };

function readRequest(value: unknown): FoundCall[] {
  const { method, url, postData }: { method?: unknown; url?: unknown; postData?: PostData } = Object(value);
  // The preflight request of a browser is not a call.
  const call = typeof url === 'string' && method !== 'OPTIONS' ? readUrl(url) : undefined;
  if (!call) return [];
  const body = bodyParameters(postData);
  const parameters = Object.assign(Object.create(null), call.parameters, body);
  if (!isOfV1(String(url), call.route, parameters)) return [];
  return [{ route: call.route, parameters, ...(!body && { incomplete: true as const }) }];
}

/** Other services have paths with `/v1/`, too: another class counts at a known host or with a v1 signature. */
function isOfV1(url: string, route: string, parameters: V1Call['parameters']): boolean {
  return HOSTS.test(url) || 'api_signature' in parameters || looksLikeV1(route);
}

/** Undefined when the body has some that can't be read. */
function bodyParameters(postData: PostData | undefined): V1Call['parameters'] | undefined {
  if (typeof postData !== 'object' || postData === null) return {};
  const { mimeType, text, params } = postData;
  // Some browsers write the values of `params` as they were encoded, but all write the text as it was sent.
  if (/^application\/x-www-form-urlencoded/i.test(String(mimeType)) && text) return readForm(String(text));
  if (Array.isArray(params) && params.length > 0) {
    const pairs = params.map((param): [unknown, unknown] => [param?.name, param?.value]);
    const isText = (pair: [unknown, unknown]): pair is [string, string] =>
      pair.every((each) => typeof each === 'string');
    return parametersOf(pairs.filter(isText));
  }
  if (typeof text !== 'string' || text === '') return {};
  if (/^multipart\/form-data/i.test(String(mimeType))) return readMultipart(text);
  return readJsonForm(text) ?? (text.includes('\n') ? undefined : readForm(text));
}

function readMultipart(text: string): V1Call['parameters'] | undefined {
  const [boundary = ''] = text.split(/\r?\n/, 1);
  if (!boundary.startsWith('--')) return undefined;
  const fields = text.split(boundary).flatMap((part) => {
    const [, head = '', value = ''] = /^\r?\n([\s\S]*?)\r?\n\r?\n([\s\S]*?)\r?\n?$/.exec(part) ?? [];
    const [, name] = /\bname="([^"]*)"/i.exec(head) ?? [];
    return name === undefined || /\bfilename\*?=/i.test(head) ? [] : [[name, value] as const];
  });
  return parametersOf(fields);
}
