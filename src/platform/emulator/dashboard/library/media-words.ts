import { HttpError } from '../../../../http/errors';
import { type Content, type Html, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import type { ContentStatus } from '../../library/content';
import { isPublished, type Media, publicationOf } from '../../library/media';
import { posterOf, type Thumbnail } from '../../library/thumbnails';
import { choicesOf, pill, time, type Words } from '../elements';

const STATUS_WORDS: Words<ContentStatus> = {
  created: ['no content yet', 'calm'],
  processing: ['processing', 'wait'],
  updating: ['updating', 'wait'],
  ready: ['ready', 'good'],
  failed: ['failed', 'bad'],
};

/** The state of a content, as a media or a text track has one. */
export function statusPill(status: ContentStatus): Html {
  return pill(...STATUS_WORDS[status]);
}

/** A media's title, or what stands in its place. */
export function titleOfMedia({ metadata }: Pick<Media, 'metadata'>): string {
  return metadata.title.trim() === '' ? 'Untitled' : metadata.title;
}

/** @throws HttpError 404 */
export function mediaOf({ state }: EmulatorContext, id: string): Media {
  const media = state.media.find(id);
  if (media) return media;
  const description = 'There is no media with this id. It may have been deleted.';
  throw new HttpError(404, { code: 'not_found', description });
}

/** Where the dashboard has a picture: also of a media that viewers don't have yet, and without counting it as delivered. */
export function picturePath({ id }: Pick<Thumbnail, 'id'>): string {
  return `/dashboard/pictures/${id}`;
}

/** The small picture of a media. It stands beside the title, so it says nothing of its own. */
function smallPoster(context: EmulatorContext, media: Media): Html {
  const poster = posterOf(context, media);
  if (poster?.status !== 'ready') return html`<span class="thumb thumb-none" aria-hidden="true"></span>`;
  return html`<img class="thumb" src="${picturePath(poster)}" alt="" width="96" height="54" loading="lazy">`;
}

/** A media in a list: its picture, and what it is called. */
export function mediaName(
  context: EmulatorContext,
  media: Media,
  { showSite = false, showStatus = false } = {},
): Html {
  return html`<div class="with-thumb">${smallPoster(context, media)}<div>
    <a class="name" href="/dashboard/media/${media.id}" dir="auto">${titleOfMedia(media)}</a><span class="sub"><code>${media.id}</code>${
      showSite && html` · site <code>${media.siteId}</code>`
    }${showStatus && html` ${statusPill(media.status)}`}</span></div></div>`;
}

/** Whether viewers can have a media now, in words. */
export function publication(media: Media, now: Date): Content {
  if (isPublished(media, now)) return 'published';
  if (media.hidden) return 'never: it is hidden';
  const from = publicationOf(media);
  if (from > now) return html`from ${time(from)}`;
  const end = media.metadata.publish_end_date;
  if (end !== null && new Date(end) <= now) return html`over since ${time(new Date(end))}`;
  return 'when it is ready';
}

export const STATUS_CHOICES = choicesOf(STATUS_WORDS);
