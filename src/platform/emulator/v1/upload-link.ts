import { type JsonObject, splitUrl } from '../../migration/mapping/values';
import type { Upload } from '../uploads/upload';
import type { Uploads } from '../uploads/uploads';
import { V1Error } from './errors';
import { optional, type Translated, wholeNumber } from './translate';

/** Where the files of each kind go as a form. */
export const FORM_PATHS = {
  video: '/v1/videos/upload',
  thumbnail: '/v1/videos/thumbnails/upload',
  track: '/v1/videos/tracks/upload',
} as const;

/** Where a large file goes in chunks. */
export const RESUMABLE_PATH = '/v1/videos/upload/resumable';

/** A file of v1 that is expected, with the parameters of its call. */
export interface Wanted {
  /** As the call has answered. */
  readonly answer: JsonObject;
  /** In hexadecimal. */
  readonly md5: string | undefined;
  /** Bytes. */
  readonly size: number | undefined;
  /** Called when the file has arrived. */
  readonly arrived?: () => void;
}

const WANTED = new WeakMap<Upload, Wanted>();

export function wantedBy(upload: Upload): Wanted | undefined {
  return WANTED.get(upload);
}

/** The size and digest that a call announces. @throws V1Error ParameterInvalid. */
export function announcedFile(call: Translated): Pick<Wanted, 'md5' | 'size'> {
  const md5 = optional(call, 'md5')?.toLowerCase();
  if (md5 !== undefined && !/^[0-9a-f]{32}$/.test(md5)) {
    throw new V1Error('ParameterInvalid', 'md5 must be the MD5 of the file, as 32 hexadecimal digits.');
  }
  return { md5, size: wholeNumber(call, 'size') };
}

/**
 * Where the file of a resource of v2 goes in v1, when it waits for one: a form to `link`; chunks to `link` with
 * `session_id`; for the method `s3` the bytes by PUT. Nothing for others.
 * @param file its `answer` has the other fields of the call's answer.
 */
export function uploadAnswer(
  { context, given, view }: Translated,
  resource: JsonObject,
  kind: keyof typeof FORM_PATHS,
  file: Wanted,
): JsonObject {
  const { upload_link: link, upload_id: id, upload_token: token } = resource;
  const { origin } = view;
  if (typeof id === 'string' && typeof token === 'string') {
    note(context.uploads, id, file);
    return { link: linkTo(origin, RESUMABLE_PATH, { key: id }), session_id: token };
  }
  if (typeof link !== 'string') return {};
  const { pathname, searchParams } = new URL(link);
  const key = pathname.split('/').at(-1) ?? '';
  note(context.uploads, key, file);
  if (given.upload_method === 's3') return { link: splitUrl(link) };
  return { link: linkTo(origin, FORM_PATHS[kind], { key, token: searchParams.get('token') ?? '' }) };
}

function note(uploads: Uploads, id: string, file: Wanted): void {
  const upload = uploads.find(id);
  if (upload) WANTED.set(upload, file);
}

function linkTo(origin: string, path: string, query: JsonObject): JsonObject {
  const { protocol, host } = new URL(origin);
  return { protocol: protocol.replace(':', ''), address: host, path, query };
}
