import { html } from '../../http/html';
import { breakable } from '../pages/breakable';

/** The colours are those of the dashboard. Without quotes or angle brackets, which the template would escape. */
const STYLE = `
:root { color-scheme: light dark; --text: #1a1c1e; --muted: #5b5f63; --ground: #fbfaf8; --surface: #ffffff; --line: #e3e0d9; --edge: #85827a; --accent: #0b5f5a; --on-accent: #ffffff }
@media (prefers-color-scheme: dark) { :root { --text: #e5e8e6; --muted: #a3abab; --ground: #121516; --surface: #181c1d; --line: #2c3233; --edge: #737c7c; --accent: #6ed3c8; --on-accent: #0c1f1d } }
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--text); font: 16px/1.5 system-ui, -apple-system, Segoe UI, Roboto, sans-serif }
main { max-width: 880px; margin: 0 auto; padding: clamp(16px, 4vw, 48px) }
h1 { margin: 0 0 4px; font-size: clamp(22px, 4vw, 30px); line-height: 1.2 }
h2 { margin: 32px 0 8px; font-size: 17px }
p { margin: 0 0 20px; color: var(--muted) }
#stage { box-shadow: 0 0 0 1px var(--line), 0 12px 36px rgb(12 20 19 / .18); border-radius: 12px }
pre { margin: 0; padding: 16px; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--surface); border: 1px solid var(--line); border-radius: 10px; font: 13px/1.6 ui-monospace, SFMono-Regular, Menlo, monospace }
pre span { white-space: nowrap }
pre wbr { white-space: normal }
form { display: flex; flex-wrap: wrap; gap: 8px; margin-bottom: 20px }
label { flex-basis: 100%; font-weight: 600 }
input { flex: 1 1 180px; min-width: 0; font: inherit; padding: 10px 12px; color: inherit; background: var(--surface); border: 1px solid var(--edge); border-radius: 8px }
::placeholder { color: var(--muted); opacity: 1 }
a { display: inline-block; padding: 2px 0; color: var(--accent); text-underline-offset: .2em }
.note { margin: 16px 0 0; font-size: 14px }
button { font: inherit; font-weight: 600; padding: 10px 18px; color: var(--on-accent); background: var(--accent); border: 0; cursor: pointer; border-radius: 8px }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
`;

export interface EmbedPage {
  /** Undefined when the address names no channel. */
  readonly channelId: string | undefined;
  readonly origin: string;
  /** Allows the page's own scripts and style, and nothing else. */
  readonly nonce: string;
}

/** A page that does what a publisher's page does: loads the embed script and calls its setup function. */
export function embedPage({ channelId, origin, nonce }: EmbedPage): string {
  const script = `${origin}/embed/channel.js`;
  const example = [
    '<div id="stage"></div>\n<script src="',
    html`<span>${breakable(script)}</span>`,
    `"></script>\n<script>channelEmbed.setup({ channelId: '${channelId ?? 'CHANNEL_ID'}', element: '#stage' })</script>`,
  ];
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Channel ${channelId ?? 'embed'}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<main>
<h1>Channel embed</h1>
${channelId === undefined ? form() : stage(channelId, nonce)}
<h2>On your own page</h2>
<pre><code>${example}</code></pre>
</main>
</body>
</html>
`.toString();
}

function form() {
  return html`<p>Shows a live channel as viewers see it.</p>
<form>
<label for="channel">Channel id</label>
<input id="channel" name="channelId" required autocomplete="off" spellcheck="false" placeholder="8 letters and digits">
<button>Show</button>
</form>`;
}

function stage(channelId: string, nonce: string) {
  return html`<p>Channel ${channelId}, as viewers see it.</p>
<div id="stage" data-channel="${channelId}"></div>
<p class="note">The emulator packages no media: its playlists are valid and empty, and a player stays without a picture.</p>
<script nonce="${nonce}" src="channel.js"></script>
<script nonce="${nonce}">channelEmbed.setup({ channelId: document.getElementById('stage').dataset.channel, element: '#stage' })</script>`;
}
