import { type Content, html } from '../../../http/html';

const SECTIONS = [
  { path: '/dashboard', label: 'Overview' },
  { path: '/dashboard/channels', label: 'Channels' },
  { path: '/dashboard/events', label: 'Events' },
  { path: '/dashboard/media', label: 'Media' },
  { path: '/dashboard/playlists', label: 'Playlists' },
  { path: '/dashboard/players', label: 'Players' },
  { path: '/dashboard/tags', label: 'Tags' },
  { path: '/dashboard/usage', label: 'Usage' },
  { path: '/dashboard/webhooks', label: 'Webhooks' },
  { path: '/dashboard/credentials', label: 'API credentials' },
  { path: '/dashboard/clients', label: 'Key provider' },
  { path: '/dashboard/stream-tester', label: 'Stream tester' },
  { path: '/dashboard/migration', label: 'v1 → v2' },
] as const;

type Section = (typeof SECTIONS)[number]['path'];

/** What the address says was just done; an address holds the word, never the sentence. */
const DONE: Readonly<Record<string, string>> = {
  'channel-created': 'The channel was created.',
  'channel-enabled': 'The channel is enabled: encoders can connect.',
  'channel-disabled': 'The channel is disabled: no encoder can connect.',
  'channel-deleted': 'The channel was deleted.',
  'event-published': 'The event is published: viewers can watch.',
  'media-created': 'The media was created.',
  'media-deleted': 'The media was deleted.',
  'metadata-saved': 'The metadata was saved.',
  'content-begun': 'The content is on its way.',
  'file-received': 'The file was received.',
  'poster-chosen': 'The poster was chosen.',
  'picture-added': 'The picture was added.',
  'picture-deleted': 'The picture was deleted.',
  'track-created': 'The text track was created.',
  'track-saved': 'The text track was saved.',
  'track-published': 'The text track is published: viewers get it.',
  'track-unpublished': 'The text track is not published any more.',
  'track-deleted': 'The text track was deleted.',
  'rendition-created': 'The rendition was created.',
  'rendition-deleted': 'The rendition was deleted.',
  'playlist-created': 'The playlist was created.',
  'playlist-saved': 'The playlist was saved.',
  'playlist-deleted': 'The playlist was deleted.',
  'player-created': 'The player was created.',
  'player-saved': 'The player was saved.',
  'player-deleted': 'The player was deleted.',
  'tag-renamed': 'The tag was renamed.',
  'tag-removed': 'The tag was taken off all media.',
  'webhook-deleted': 'The webhook was deleted.',
  'credential-created': 'The credential was created.',
  'credential-deleted': 'The credential was deleted; its secret is refused from now on.',
  'credential-replaced': 'The credential has a new secret; the old one is refused from now on.',
};

/** Scripts for a subject of their own. */
type PageScript = 'upload' | 'order' | 'forms' | 'stream-tester';

interface Page {
  readonly title: string;
  /** The page above this one. */
  readonly above?: { readonly path: string; readonly label: string };
  readonly section: Section | undefined;
  /** Beside the title. */
  readonly aside?: Content;
  /** A sentence on what the page is for. */
  readonly intro?: Content;
  readonly content: Content;
  /** Beside the script of every page. */
  readonly scripts?: readonly PageScript[];
  /** Beside the style sheet of every page. */
  readonly styles?: readonly 'stream-tester'[];
  /** The word of `DONE` that stands in the address. */
  readonly done?: unknown;
}

const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0b5f5a"/><circle cx="16" cy="16" r="5" fill="#fff"/><path d="M8 8a11 11 0 0 0 0 16M24 8a11 11 0 0 1 0 16" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round"/></svg>',
)}`;

/** A whole page of the dashboard, as text to send. */
export function layout({
  title,
  above,
  section,
  aside,
  intro,
  content,
  scripts = [],
  styles = [],
  done,
}: Page): string {
  const message = typeof done === 'string' && Object.hasOwn(DONE, done) ? DONE[done] : undefined;
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>${title} · Platform emulator</title>
  <link rel="icon" href="${ICON}">
  <link rel="stylesheet" href="/dashboard/style.css">${styles.map(
    (name) => html`<link rel="stylesheet" href="/dashboard/${name}.css">`,
  )}
  <script src="/dashboard/script.js" defer></script>${scripts.map(
    (name) => html`<script src="/dashboard/${name}.js" defer></script>`,
  )}
</head>
<body>
  <a class="skip" href="#content">Skip to the content</a>
  <header class="side"><div>
    <a class="brand" href="/dashboard"><img src="${ICON}" alt="" width="28" height="28"><span>Platform <span class="muted">emulator</span></span></a>
    <nav aria-label="Dashboard"><ul>${SECTIONS.map(
      ({ path, label }) =>
        html`<li><a href="${path}"${path === section && html` aria-current="page"`}>${label}</a></li>`,
    )}</ul></nav>
    <p class="note">A mock for development. What it holds is gone when it stops.</p>
  </div></header>
  <main id="content" tabindex="-1">
    ${above && html`<p class="above"><a href="${above.path}"><span aria-hidden="true">←</span> ${above.label}</a></p>`}
    <div class="title"><h1>${title}</h1>${aside}</div>
    ${intro !== undefined && html`<p class="intro">${intro}</p>`}
    ${message !== undefined && html`<p class="message message-good" role="status">${message}</p>`}
    ${content}
  </main>
  <p class="unseen" role="status" id="announcement"></p>
</body>
</html>
`.toString();
}
