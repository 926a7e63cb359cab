import type { Express, Response } from 'express';
import { routeAt } from '../../../http/app';
import { html } from '../../../http/html';
import { posterOf, type Thumbnail } from '../resources/thumbnails';
import { probe } from '../uploads/probe';
import type { StoredFile } from '../uploads/uploads';
import { answer, countBytes, type DeliveryParts, NO_MEDIA, sendFile } from './answers';
import { publishedMedia, type Watchable, watchableOf } from './watchable';

const DRAWN = 'image/svg+xml';
const ENDINGS: ReadonlyMap<string, string> = new Map([
  ['image/jpeg', 'jpg'],
  ['image/png', 'png'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
  ['image/avif', 'avif'],
  [DRAWN, 'svg'],
]);

export function mountPictures(app: Express, context: DeliveryParts): void {
  const { state, clock } = context;

  routeAt(app, '/v2/media/:mediaId/poster.:ending').get(
    async ({ params: { mediaId, ending }, query: { width } }, response) => {
      const isPicture = ending === 'jpeg' || [...ENDINGS.values()].includes(ending);
      const watchable = isPicture ? watchableOf(state, clock.now(), mediaId) : undefined;
      if (!watchable) return answer(response, NO_MEDIA, undefined);
      countBytes(context, response, watchable.siteId);
      const picture = await posterPicture(context, watchable);
      if (picture) sendFile(response, picture.file, picture.type);
      else drawPoster(response, watchable.metadata.title, width);
    },
  );

  routeAt(app, '/thumbnails/:thumbnailId{.:ending}').get(
    async ({ params: { thumbnailId }, query: { width } }, response) => {
      const thumbnail = state.thumbnails.find(thumbnailId);
      const media = publishedMedia(state, clock.now(), thumbnail?.mediaId);
      if (!media || thumbnail?.status !== 'ready') return answer(response, NO_MEDIA, undefined);
      countBytes(context, response, media.siteId);
      await sendThumbnail(response, thumbnail, media.metadata.title, width);
    },
  );
}

/** Sends a picture whether or not viewers may see it. @param width in pixels, as the query asks for it. */
export async function sendThumbnail(response: Response, thumbnail: Thumbnail, title: string, width: unknown) {
  const { file } = thumbnail;
  if (file) sendFile(response, file, await typeOf(thumbnail, file));
  else drawPoster(response, title, width);
}

async function posterPicture(
  context: DeliveryParts,
  watchable: Watchable,
): Promise<{ readonly file: StoredFile; readonly type: string } | undefined> {
  if (watchable.live) return undefined;
  const thumbnail = posterOf(context, watchable.media);
  if (!thumbnail?.file) return undefined;
  const { file } = thumbnail;
  const type = await typeOf(thumbnail, file);
  return ENDINGS.has(type) ? { file, type } : undefined;
}

const sniffed = new WeakMap<StoredFile, Promise<string | undefined>>();

/** The type of a picture by its bytes, else as its sender declared it, if that is possible. */
async function typeOf({ thumbnailType }: Thumbnail, file: StoredFile): Promise<string> {
  const known = sniffed.get(file) ?? probe(file).then((facts) => facts?.mimeType);
  sniffed.set(file, known);
  const type = (await known) ?? file.declaredType?.split(';')[0]?.trim().toLowerCase() ?? '';
  const canBe = ENDINGS.has(type) || (thumbnailType === 'video' && /^video\/[\w.+-]+$/.test(type));
  return canBe ? type : 'application/octet-stream';
}

const POSTER_WIDTHS = [320, 640, 1280];

/** The poster as documents have it: in several widths, each of them the same picture. */
export async function renderPosters(context: DeliveryParts, watchable: Watchable, address: string) {
  const type = (await posterPicture(context, watchable))?.type ?? DRAWN;
  const poster = `${address}/poster.${ENDINGS.get(type)}`;
  return {
    image: poster,
    images: POSTER_WIDTHS.map((width) => ({ src: `${poster}?width=${width}`, width, type })),
  };
}

/** Control characters and lone surrogates, which no XML 1.0 document can have, not even escaped. */
const NO_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

export function written(value: unknown): string {
  return String(value).replaceAll(NO_XML, '');
}

const DRAWN_WIDTH = 1280;
const MAX_LINE_LENGTH = 36;

/** A picture of 16 to 9 that shows a title, as SVG: the emulator takes no picture from a stream. */
function drawPoster(response: Response, title: string, asked: unknown): void {
  const width = Number(/^[1-9]\d{0,3}$/.exec(String(asked))?.[0] ?? DRAWN_WIDTH);
  const line = title.length > MAX_LINE_LENGTH ? `${title.slice(0, MAX_LINE_LENGTH - 1)}…` : title;
  const picture = html`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${Math.round((width * 9) / 16)}" viewBox="0 0 1280 720">
<defs><linearGradient id="sky" x1="0" y1="0" x2="1" y2="1"><stop stop-color="#1f4744"/><stop offset="1" stop-color="#0c1413"/></linearGradient></defs>
<rect width="1280" height="720" fill="url(#sky)"/>
<text x="640" y="375" fill="#eaf0ee" font-family="system-ui, sans-serif" font-size="56" font-weight="600" text-anchor="middle" unicode-bidi="plaintext">${written(line)}</text>
</svg>
`;
  answer(response, NO_MEDIA, picture.toString(), DRAWN);
}
