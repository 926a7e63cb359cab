import type express from 'express';
import * as z from 'zod';
import { parseJson } from '../../../drm/bytes';
import { pathOf, routeAt } from '../../../http/app';
import { readQuery } from '../../../http/faults';
import { HIDDEN, maskerOf } from '../../../http/secret';
import type { EmulatorContext } from '../context';
import { queryNumber, queryText, sentBodies } from '../json-body';
import { capital } from '../resources/fields';
import { isMeant, whyNoRoute } from './faults';

declare global {
  namespace Express {
    interface Locals {
      /** The body of the answer, unless it is a file or comes from elsewhere. */
      answer?: string | Buffer;
    }
  }
}

type Headers = Readonly<Record<string, unknown>>;

export interface Exchanged {
  /** Counts from 1. */
  readonly id: number;
  readonly at: Date;
  readonly ms: number;
  readonly method: string;
  readonly url: string;
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Headers;
  readonly body: Buffer | undefined;
  /** The length of the body as it was read or announced; undefined when it is not known. */
  readonly length: number | undefined;
  readonly answer: {
    readonly headers: Headers;
    readonly body: Buffer | undefined;
    readonly length: number | undefined;
  };
}

/** The limits of the journal: above them, it forgets the oldest requests. */
export const JOURNAL_LIMITS = { entries: 1000, bytes: 8 * 1024 * 1024, bodyBytes: 16 * 1024 };
/** The approximate size of an entry without its texts. */
const ENTRY_BYTES = 1024;

/** The latest requests of clients. They are kept as they came; `render` hides secrets. */
export class Journal {
  #entries: { readonly exchanged: Exchanged; readonly bytes: number }[] = [];
  #bytes = 0;
  #last = 0;

  constructor(private readonly limits = JOURNAL_LIMITS) {}

  /** How many requests there were, with those that are forgotten: the id of the latest. */
  get last(): number {
    return this.#last;
  }

  /** Oldest first. */
  list(): readonly Exchanged[] {
    return this.#entries.map(({ exchanged }) => exchanged);
  }

  add(exchanged: Omit<Exchanged, 'id'>): void {
    const { url, headers, body, answer } = exchanged;
    const { length } = JSON.stringify([url, headers, answer.headers]);
    const bytes = ENTRY_BYTES + length + (body?.length ?? 0) + (answer.body?.length ?? 0);
    this.#last += 1;
    this.#entries.push({ exchanged: { ...exchanged, id: this.#last }, bytes });
    this.#bytes += bytes;
    while (this.#entries.length > this.limits.entries || this.#bytes > this.limits.bytes)
      this.#bytes -= this.#entries.shift()?.bytes ?? 0;
  }

  /** @param last the id of the latest request, from which it counts on. */
  clear(last = this.#last): void {
    this.#entries = [];
    this.#bytes = 0;
    this.#last = last;
  }

  /** The first bytes of a body, in memory of their own. */
  cut(body: Buffer | string | undefined): Buffer | undefined {
    const { bodyBytes } = this.limits;
    if (typeof body === 'string') return Buffer.from(body.slice(0, bodyBytes));
    return body && Buffer.from(body.subarray(0, bodyBytes));
  }
}

/** Requests of the dashboard's pages, which are not those of a client. */
const OWN_PAGES = /^\/(?:dashboard|verify)(?:\/|$)/i;

export function keepJournal(
  app: express.Express,
  { journal, clock, now }: EmulatorContext,
): express.RequestHandler {
  // Express's documented place for additions to the responses of an app. All JSON and text go through `send`.
  const { send } = app.response;
  app.response.send = function (this: express.Response, body) {
    if (typeof body === 'string' || Buffer.isBuffer(body)) this.locals.answer = body;
    return send.call(this, body);
  };
  return (request, response, next) => {
    if (OWN_PAGES.test(request.path)) return next();
    const { method, originalUrl: url } = request;
    // Readers of bodies change them.
    const headers = { ...request.headers };
    const [at, started] = [clock.now(), now()];
    response.on('close', () => {
      const sent = sentBodies.get(request);
      const { answer } = response.locals;
      journal.add({
        at,
        ms: Math.round((now() - started) * 100) / 100,
        method,
        url,
        status: response.headersSent ? response.statusCode : 0,
        headers,
        body: journal.cut(sent),
        length: sent?.length ?? lengthIn(request.headers['content-length']),
        answer: {
          headers: response.getHeaders(),
          body: journal.cut(answer),
          length: lengthIn(response.getHeader('content-length')),
        },
      });
    });
    next();
  };
}

function lengthIn(header: unknown): number | undefined {
  return header === undefined ? undefined : Number(header);
}

/** Names of headers, fields and parameters whose values are secrets; `key` alone unless the value is an id. */
const SECRET = String.raw`[\w-]*(?:authorization\d?|cookie|secret|token|signature|credential|password|passwd|passphrase|pwd|jwt|hmac|(?:plain|cipher)value|(?:api|stream|content|shared|private)[_-]?key)s?(?:[_-]?(?:hex|\d+))?|(?:[\w-]*-)?auth|(?:(?:25)*(?:3F|26))?(?:k|sig|preview)`;
const MAYBE_SECRET = String.raw`[\w-]*key(?:[_-]?hex)?`;
const SECRET_NAME = new RegExp(`^(?:${SECRET})$`, 'i');
const MAYBE_SECRET_NAME = new RegExp(`^${MAYBE_SECRET}$`, 'i');
const ID = /^["']?[A-Za-z0-9]{0,8}["']?$/;

const isSecret = (name: string, value: string) =>
  SECRET_NAME.test(name) || (MAYBE_SECRET_NAME.test(name) && !ID.test(value));

/**
 * Separators of a name and its value: in JSON, a form, a query, PHP's format; in XML; in a form of several parts. They end
 * with all white space: the time would grow with its square.
 */
const SIGN = [
  String.raw`\\*["']?(?:\]|%(?:25)*5D)*\s*(?:[:=]>?|%(?:25)*3D|;[as]:\d+:)\s*(?!\s)`,
  String.raw`(?<=<[\w:.-]{1,80})(?:\s[^<>]{0,400})?(?<!/)>\s*(?!\s)`,
  String.raw`"[^\n]{0,200}\n(?:\S[^\n]{0,200}\n){0,4}\r?\n`,
];
/** The value may be cut. Numbers of JSON and words after a colon are the last two. */
const VALUE = [
  String.raw`(?<=>\s*)(?:<!\[CDATA\[|<!--|[^<\s])(?:<!\[CDATA\[|<!--|[^<])*`,
  String.raw`"(?:[^"\\]|\\[^])*"?|'(?:[^'\\]|\\[^])*'?|\\+"[^]*?(?:\\+"|$)|[[{][^]*`,
  String.raw`(?<=(?:=|%(?:25)*3D)\s*)[^\s&"<>\\]+`,
  String.raw`(?<=\n\r?\n)[^]+?(?=\r?\n--|$)`,
  String.raw`(?<=["']\s*:\s*)[-+.\w]+|(?<=:\s*)(?=\S{0,99}\d)[^\s"',;<>&]{8,}`,
];
const FIELD = new RegExp(
  String.raw`(?<![\w-])(${SECRET}|${MAYBE_SECRET})(${SIGN.join('|')})(${VALUE.join('|')})`,
  'gi',
);
/** Addresses with a token in their path, passwords of addresses, credentials of a header, and JSON Web Tokens. */
const OTHERS: readonly (readonly [RegExp, string])[] = [
  [/(\/live\/(?:previews|masters)\/)[\w-]+/g, `$1${HIDDEN}`],
  [/(:\/\/|%3A%2F%2F)(?:(?!%2F)[^\s/"'<>&])+(@|%40)/gi, `$1${HIDDEN}$2`],
  [/\b(Bearer|Basic) [^\s"'<>&,\\]{15,}/gi, `$1 ${HIDDEN}`],
  [/(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*/g, HIDDEN],
];

function withoutNamed(text: string): string {
  const hidden = text.replaceAll(FIELD, (whole, name: string, sign: string, value: string) => {
    const [quote = ''] = /^(?:\\+"|["'])/.exec(value) ?? [];
    return isSecret(name, value) ? `${name}${sign}${quote}${HIDDEN}${quote}` : whole;
  });
  return OTHERS.reduce((rest, [pattern, by]) => rest.replaceAll(pattern, by), hidden);
}

export type ShownExchange = ReturnType<typeof renderExchanged>;

/** Without secrets, and with a hint for the client after a 400 or 404. */
export function renderExchanged(context: EmulatorContext, exchanged: Exchanged) {
  const { id, at, ms, method, url, status, headers, body, length, answer } = exchanged;
  const hide = secretsOf(context);
  const path = pathOf({ url });
  return {
    id,
    time: at.toISOString(),
    ms,
    method,
    path: hide(path),
    query: hide(url.slice(path.length + 1)),
    status,
    headers: shownHeaders(headers, hide),
    body: shownBody(body, length, hide),
    body_bytes: length ?? null,
    answer: {
      headers: shownHeaders(answer.headers, hide),
      body: shownBody(answer.body, answer.length, hide),
      body_bytes: answer.length ?? null,
    },
    hint: hide(hintOf(context, exchanged) ?? '') || null,
  };
}

/** Hides secrets by their names, and all those of the account. */
export function secretsOf({ state, seeds, clients }: EmulatorContext): (text: string) => string {
  const hide = maskerOf([
    seeds.v1Secret,
    ...state.credentials.all().map(({ secret }) => secret),
    ...[...clients.values()].flatMap(({ apiKey, sharedSecret }) => [apiKey, sharedSecret]),
  ]);
  return (text) => hide(withoutNamed(text));
}

function shownHeaders(headers: Headers, hide: (text: string) => string) {
  const shown = Object.entries(headers).map(([name, value]) => {
    const isHidden = SECRET_NAME.test(name) || MAYBE_SECRET_NAME.test(name);
    // The scheme of a credential is no secret: `Bearer ***`.
    return [name, isHidden ? `${value}`.replace(/^(\w+ )?.*$/s, `$1${HIDDEN}`) : hide(`${value}`)];
  });
  return Object.fromEntries(shown) as Readonly<Record<string, string>>;
}

const CONTROL = /[^\P{Cc}\s]/u;

/** JSON as it is, other text as it is; null when there is none or it is not kept, as files are not. */
function shownBody(
  body: Buffer | undefined,
  length: number | undefined,
  hide: (text: string) => string,
): unknown {
  if (body === undefined || body.length === 0) return null;
  const text = body.toString();
  if (CONTROL.test(text)) return null;
  if (length !== undefined && body.length < length) return `${hide(text)}…`;
  const parsed = parseJson(text, (name, value) => {
    if (value === null || value === '' || typeof value === 'boolean') return value;
    if (isSecret(name, typeof value === 'object' ? '{}' : `${value}`)) return HIDDEN;
    return typeof value === 'string' ? hide(value) : value;
  });
  return parsed === undefined ? hide(text) : parsed;
}

function hintOf({ faults }: EmulatorContext, { method, url, status, answer }: Exchanged) {
  if (status === 404) {
    const why = whyNoRoute(`${method} ${pathOf({ url })}`, faults.routes);
    return why && capital(why);
  }
  if (status !== 400) return undefined;
  // The errors of the platform name the field that is wrong, and the nearest.
  const said = shownBody(answer.body, answer.length, (text) => text) as {
    readonly errors?: readonly { readonly description: string }[];
    readonly message?: string;
  } | null;
  return said?.errors?.map(({ description }) => description).join(' ') ?? said?.message;
}

const RequestsQuery = z.strictObject({
  method: queryText.toUpperCase().default('*'),
  path: queryText.startsWith('/', 'must be a path, in which * and :name stand for any part').optional(),
  status: queryText.regex(/^(?:0|[1-5](?:\d\d|xx))$/, 'must be a status, or a class such as 4xx').optional(),
  since: queryText
    .regex(/^\d{1,15}$/, 'must be the id of a request, or the last that was answered')
    .transform(Number)
    .default(0),
  limit: queryNumber(
    'The most requests, the latest of those that are meant.',
    JOURNAL_LIMITS.entries,
    JOURNAL_LIMITS.entries,
  ),
});

export function mountJournal(app: express.Express, context: EmulatorContext): void {
  const { journal } = context;
  routeAt(app, '/requests')
    .get((request, response) => {
      const { method, path, status, since, limit } = readQuery(RequestsQuery, request.query);
      const found = journal.list().filter((each) => {
        const target = `${method === '*' ? each.method : method} ${path ?? pathOf(each)}`;
        const isOfStatus = status === undefined || `${each.status}`.startsWith(status.replace('xx', ''));
        return each.id > since && isOfStatus && isMeant(target, `${each.method} ${pathOf(each)}`);
      });
      const requests = found.slice(-limit).map((each) => renderExchanged(context, each));
      response.set('cache-control', 'no-store').json({ requests, last: journal.last });
    })
    .delete((_request, response) => {
      journal.clear();
      response.status(204).end();
    });
}
