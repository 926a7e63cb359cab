import type { Request, Response } from 'express';
import type { Json, JsonObject } from '../../migration/mapping/values';
import { v1Error } from './errors';
import { type Parameter, queryOf } from './signed-call';

export const FORMATS = {
  json: (answer: JsonObject) => ({ type: 'application/json; charset=utf-8', body: JSON.stringify(answer) }),
  xml: async (answer: JsonObject) => ({ type: 'application/xml; charset=utf-8', body: await toXml(answer) }),
  php: (answer: JsonObject) => ({ type: 'text/plain; charset=utf-8', body: toPhp(answer) }),
  py: (answer: JsonObject) => ({
    type: 'application/octet-stream',
    body: Buffer.concat([Buffer.from([0x80, 2]), ...pickled(answer), Buffer.from('.')]),
  }),
};

type Format = keyof typeof FORMATS;

export interface Shown {
  readonly format: Format;
  /** The limit of the caller, once that is known. */
  rateLimit?: JsonObject;
}

declare global {
  namespace Express {
    interface Locals {
      v1?: Shown;
    }
  }
}

/** The documented sample leaves `api_format` out and gets JSON. */
export function formatOf(signed: readonly Parameter[]): Format {
  const format = signed.find(({ name }) => name === 'api_format')?.value ?? 'json';
  if (isFormat(format)) return format;
  throw v1Error('ParameterInvalid', `api_format must be one of ${Object.keys(FORMATS).join(', ')}.`);
}

export function formatAsked(request: Request): Format {
  const format = new URLSearchParams(queryOf(request.originalUrl)).get('api_format') ?? '';
  return isFormat(format) ? format : 'json';
}

function isFormat(name: string): name is Format {
  return Object.hasOwn(FORMATS, name);
}

export async function send(response: Response, status: number, fields: JsonObject): Promise<void> {
  const { format = 'json', rateLimit } = response.locals.v1 ?? {};
  const { type, body } = await FORMATS[format]({ ...fields, ...(rateLimit && { rate_limit: rateLimit }) });
  response.status(status).set('content-type', type).send(Buffer.from(body));
}

const XML_NAME = /^[A-Za-z_][\w.-]*$/;
/** Elements whose children keep their names: `key` is a parameter there, not the key of a resource. */
const FREE_NAMES = ['query', 'custom'];

/** As documented: root `response`; keys, ids and totals are attributes, and a list has an element of its singular. */
async function toXml(answer: JsonObject): Promise<string> {
  // Loaded for the first one: few clients ask for XML.
  const { default: Builder } = await import('fast-xml-builder');
  const builder = new Builder({ ignoreAttributes: false, attributeNamePrefix: '@', suppressEmptyNode: true });
  const response = xmlChildren(answer, 'response');
  return `<?xml version="1.0" encoding="UTF-8"?>\n${builder.build({ response })}`;
}

type XmlNode = string | readonly XmlNode[] | { readonly [name: string]: XmlNode };

function xmlChildren(fields: JsonObject, parent: string): XmlNode {
  const entries = Object.entries(fields);
  const isNamed = ([name]: readonly [string, Json]) => XML_NAME.test(name) && name !== '__proto__';
  const children = entries.filter(isNamed).map(([name, value]): [string, XmlNode] => {
    const isAttribute = ['key', 'id'].includes(name) && !FREE_NAMES.includes(parent);
    return [isAttribute ? `@${name}` : name, xmlNode(value, name, fields.total)];
  });
  // Names of custom parameters need not be names of elements.
  const others = entries
    .filter((entry) => !isNamed(entry))
    .map(([name, value]): XmlNode => ({ '@name': xmlText(name), '#text': xmlNode(value, name) }));
  return Object.fromEntries(others.length === 0 ? children : [...children, ['param', others]]);
}

function xmlNode(value: Json, name: string, total?: Json): XmlNode {
  if (isList(value)) {
    const singular = name.endsWith('s') ? name.slice(0, -1) : 'item';
    const items = value.map((item) => xmlNode(item, singular));
    return { '@total': String(total ?? items.length), ...(items.length > 0 && { [singular]: items }) };
  }
  if (value === null) return '';
  if (typeof value === 'object') return xmlChildren(value, name);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return xmlText(String(value));
}

/** XML 1.0 can't say control characters, nor halves of a surrogate pair. */
function xmlText(text: string): string {
  return text.replaceAll(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
}

/** PHP's `serialize`, whose lengths are in bytes of UTF-8. */
function toPhp(value: Json): string {
  if (value === null) return 'N;';
  if (typeof value === 'boolean') return `b:${Number(value)};`;
  if (typeof value === 'number') return Number.isInteger(value) ? `i:${value};` : `d:${value};`;
  if (typeof value === 'string') return `s:${Buffer.byteLength(value)}:"${value}";`;
  const entries = isList(value)
    ? value.map((item, at) => `i:${at};${toPhp(item)}`)
    : Object.entries(value).map(([name, item]) => toPhp(name) + toPhp(item));
  return `a:${entries.length}:{${entries.join('')}}`;
}

/** Python's `pickle` in protocol 2, the highest of Python 2: every later Python reads it. */
function pickled(value: Json): readonly Buffer[] {
  if (value === null) return [Buffer.from('N')];
  if (typeof value === 'boolean') return [Buffer.from([value ? 0x88 : 0x89])];
  if (typeof value === 'number') return [pickledNumber(value)];
  if (typeof value === 'string') {
    const text = Buffer.from(value);
    const head = Buffer.from('X\0\0\0\0');
    head.writeUInt32LE(text.length, 1);
    return [head, text];
  }
  if (isList(value)) return [Buffer.from(']('), ...value.flatMap(pickled), Buffer.from('e')];
  const entries = Object.entries(value).flatMap(([name, item]) => [...pickled(name), ...pickled(item)]);
  return [Buffer.from('}('), ...entries, Buffer.from('u')];
}

function pickledNumber(value: number): Buffer {
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 31) {
    const integer = Buffer.from('J\0\0\0\0');
    integer.writeInt32LE(value, 1);
    return integer;
  }
  if (Number.isSafeInteger(value)) {
    const long = Buffer.from('\x8a\x08\0\0\0\0\0\0\0\0', 'latin1');
    long.writeBigInt64LE(BigInt(value), 2);
    return long;
  }
  const float = Buffer.from('G\0\0\0\0\0\0\0\0');
  float.writeDoubleBE(value, 1);
  return float;
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
