import { Tokenizer, TokenParser, TokenType } from '@streamparser/json';
import { ROUTES } from '../mapping/routes';
import type { V1Call } from '../migrate-call';
import { type FoundCall, looksLikeV1, readForm, readJsonForm, readUrl, UnreadableInput } from './found-call';

/** Deeper than any archive of calls is. */
const MAX_DEPTH = 100;
/** How much of one entry is read, in bytes. */
const MAX_ENTRY = 4 * 1024 * 1024;
/** Texts are cut behind so many bytes: bodies of answers can be far larger, and nothing of them is needed. */
const MAX_TEXT = 256 * 1024;

const NO_HAR = 'is no HAR file; export it as HAR 1.2';

/** The hosts that answer v1, and those of the emulator. */
const HOSTS = /(?:jwplatform|jwplayer|bitsontherun|longtailvideo|emulator|localhost|127\.0\.0\.1|\[::1\])/i;

/**
 * Reads an archive of HTTP calls (HAR 1.2) piece by piece, and tells each call of v1 as soon as it is complete. What it
 * keeps in memory does not grow with the archive.
 */
export class HarReader {
  readonly #tokenizer = new Tokenizer();
  readonly #parser = new TokenParser({ paths: ['$.log.entries.*.request'], keepStack: false });
  readonly #cutter = new TextCutter();
  readonly #onCall: (call: FoundCall) => void;
  #depth = 0;
  #sinceEntry = 0;

  constructor(onCall: (call: FoundCall) => void) {
    this.#onCall = onCall;
    this.#tokenizer.onToken = (token) => {
      const { token: type } = token;
      if (this.#depth === 0 && type !== TokenType.LEFT_BRACE) throw new UnreadableInput(NO_HAR);
      if (type === TokenType.LEFT_BRACE || type === TokenType.LEFT_BRACKET) this.#depth += 1;
      if (type === TokenType.RIGHT_BRACE || type === TokenType.RIGHT_BRACKET) this.#depth -= 1;
      if (this.#depth > MAX_DEPTH) throw new UnreadableInput(`is nested deeper than ${MAX_DEPTH} levels`);
      this.#parser.write(token);
    };
    this.#parser.onValue = ({ value }) => {
      this.#sinceEntry = 0;
      const call = readRequest(value);
      if (call) this.#onCall(call);
    };
  }

  /** @throws UnreadableInput when it is no JSON, or an entry is too large. */
  write(chunk: Uint8Array): void {
    const cut = this.#cutter.cut(chunk);
    this.#sinceEntry += cut.length;
    if (this.#sinceEntry > MAX_ENTRY) {
      throw new UnreadableInput(`has an entry of more than ${MAX_ENTRY / 1024 / 1024} MiB`);
    }
    this.#read(() => this.#tokenizer.write(cut));
  }

  /** @throws UnreadableInput when the archive ends in the middle. */
  end(): void {
    if (this.#parser.isEnded) return;
    throw new UnreadableInput('ends in the middle; export it again');
  }

  #read(read: () => void): void {
    try {
      read();
    } catch (thrown) {
      if (thrown instanceof UnreadableInput) throw thrown;
      throw new UnreadableInput(NO_HAR);
    }
  }
}

/** Where the reading of a text stands. */
interface TextState {
  isText: boolean;
  isEscaped: boolean;
  /** How many digits of a `\u` escape are to come. */
  digits: number;
  length: number;
  isCut: boolean;
}

/** Cuts long texts of a JSON document that comes in pieces: behind the limit only the quote that ends them stays. */
class TextCutter {
  #state: TextState = { isText: false, isEscaped: false, digits: 0, length: 0, isCut: false };

  cut(chunk: Uint8Array): Uint8Array {
    const out = new Uint8Array(chunk.length);
    let size = 0;
    // Taken apart for the time of a piece: this runs for each byte.
    let { isText, isEscaped, digits, length, isCut } = this.#state;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (byte === QUOTE && !isEscaped) {
        isText = !isText;
        digits = 0;
        length = 0;
        isCut = false;
      } else if (isText) {
        length += 1;
        // A cut in an escape, or in a character of several bytes, would leave no JSON.
        isCut ||= length > MAX_TEXT && !isEscaped && digits === 0 && (byte < 0x80 || byte >= 0xc0);
        if (isEscaped) {
          if (byte === LETTER_U) digits = 4;
          isEscaped = false;
        } else if (byte === BACKSLASH) isEscaped = true;
        else if (digits > 0) digits -= 1;
      }
      if (isCut) continue;
      out[size] = byte;
      size += 1;
    }
    this.#state = { isText, isEscaped, digits, length, isCut };
    return out.subarray(0, size);
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;

interface HarRequest {
  readonly method?: unknown;
  readonly url?: unknown;
  readonly postData?: { readonly mimeType?: unknown; readonly text?: unknown; readonly params?: unknown };
}

function readRequest(value: unknown): FoundCall | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { method, url, postData }: HarRequest = value;
  // What a browser asks before it calls is no call.
  if (typeof url !== 'string' || method === 'OPTIONS') return undefined;
  const call = readUrl(url);
  if (!call) return undefined;
  const body = bodyParameters(postData);
  const parameters = Object.assign(Object.create(null), call.parameters, body);
  if (!isOfV1(url, call.route, parameters)) return undefined;
  return { route: call.route, parameters, ...(!body && { incomplete: true as const }) };
}

/** Other services have paths with `/v1/`, too: an unknown route counts at a known host or with a v1 signature. */
function isOfV1(url: string, route: string, parameters: V1Call['parameters']): boolean {
  if (ROUTES.some((mapping) => mapping.route === route)) return true;
  return HOSTS.test(url) || 'api_signature' in parameters || looksLikeV1(route);
}

/** The parameters of a body; undefined when it has some that can't be read. */
function bodyParameters(postData: HarRequest['postData']): V1Call['parameters'] | undefined {
  if (typeof postData !== 'object' || postData === null) return {};
  const { mimeType, text, params } = postData;
  // Some browsers write the values of `params` as they were encoded, but all write the text as it was sent.
  if (/^application\/x-www-form-urlencoded/i.test(String(mimeType)) && text) return readForm(String(text));
  if (Array.isArray(params) && params.length > 0) {
    const pairs = params.filter(
      (param): param is { name: string; value: string } =>
        typeof param?.name === 'string' && typeof param?.value === 'string',
    );
    return Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
  }
  if (typeof text !== 'string' || text === '') return {};
  if (/^multipart\/form-data/i.test(String(mimeType))) return readMultipart(text);
  return readJsonForm(text) ?? (text.includes('\n') ? undefined : readForm(text));
}

/** The fields of a form in parts; files are none. */
function readMultipart(text: string): V1Call['parameters'] | undefined {
  const [boundary = ''] = text.split(/\r?\n/, 1);
  if (!boundary.startsWith('--')) return undefined;
  const fields: Record<string, string> = Object.create(null);
  for (const part of text.split(boundary)) {
    const [, head = '', value = ''] = /^\r?\n([\s\S]*?)\r?\n\r?\n([\s\S]*?)\r?\n?$/.exec(part) ?? [];
    const [, name] = /\bname="([^"]*)"/i.exec(head) ?? [];
    if (name !== undefined && !/\bfilename\*?=/i.test(head)) fields[name] = value;
  }
  return fields;
}
