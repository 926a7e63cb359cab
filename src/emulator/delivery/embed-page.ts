import { html } from '../../http/html';
import { breakable } from '../pages/breakable';

export interface EmbedPage {
  /** Undefined when the address names no channel. */
  readonly channelId: string | undefined;
  readonly origin: string;
  /** Allows the page's own scripts and style, and nothing else. */
  readonly nonce: string;
  readonly style: string;
}

/** A page that does what a publisher's page does: loads the embed script and calls its setup function. */
export function embedPage({ channelId, origin, nonce, style }: EmbedPage): string {
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
<style nonce="${nonce}">${style}</style>
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
