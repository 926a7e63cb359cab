import { type Content, type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import type { ContentStatus } from '../resources/content';
import { isPublished, type Media, publicationOf } from '../resources/media';
import { posterOf, type Thumbnail } from '../resources/thumbnails';
import { pill, time, type Words } from './elements';
import { idLine } from './resource-pages';

export const STATUS_WORDS: Words<ContentStatus> = {
  created: ['no content yet', 'neutral'],
  processing: ['processing', 'warning'],
  updating: ['updating', 'warning'],
  ready: ['ready', 'success'],
  failed: ['failed', 'danger'],
};

export function statusPill(status: ContentStatus): Html {
  return pill(...STATUS_WORDS[status]);
}

export function titleOfMedia({ metadata }: Pick<Media, 'metadata'>): string {
  return metadata.title.trim() === '' ? 'Untitled' : metadata.title;
}

/** The dashboard's own path of a picture: it also has those of unpublished media, and counts no delivery. */
export function picturePath({ id }: Pick<Thumbnail, 'id'>): string {
  return `/dashboard/pictures/${id}`;
}

export function mediaName(context: EmulatorContext, media: Media): Html {
  const poster = posterOf(context, media);
  const picture = poster
    ? html`<img class="thumb" src="${picturePath(poster)}" alt="" width="96" height="54" loading="lazy">`
    : html`<span class="thumb" aria-hidden="true"></span>`;
  return html`<div class="with-thumb">${picture}<div><a class="name" href="/dashboard/media/${media.id}" dir="auto">${titleOfMedia(media)}</a>${idLine(context, media)}</div></div>`;
}

export function publication(media: Media, now: Date): Content {
  if (isPublished(media, now)) return 'published';
  if (media.hidden) return 'never: it is hidden';
  const from = publicationOf(media);
  if (from > now) return html`from ${time(from)}`;
  const end = media.metadata.publish_end_date;
  if (end !== null && new Date(end) <= now) return html`over since ${time(new Date(end))}`;
  return 'when it is ready';
}
