/*
 * For pages with a stage, those of the embed and the stream tester: calls the setup function of the embed, and reports
 * below it how the browser plays the stream.
 */
(() => {
  'use strict';

  const SYSTEMS = {
    'org.w3.clearkey': 'ClearKey',
    'com.widevine.alpha': 'Widevine',
    'com.microsoft.playready': 'PlayReady',
    'com.apple.fps': 'FairPlay',
  };
  const REASONS = {
    noLicense:
      ' The license server of this emulator knows the keys that its key provider gave out, and those that were sent to POST /clearkey/keys on the control port.',
    unreachable: ' Its server may not let pages of other origins have it (CORS).',
  };
  const FORMATS = { dash: 'DASH', hls: 'HLS', file: 'A file' };

  /** @param texts those of the page, by states of the stream. */
  function describe({ state, format, isEncrypted, keySystem, keyIds = [], reason }, texts) {
    const what = FORMATS[format] ?? 'It';
    if (state === 'playing') {
      if (!isEncrypted) return `${what}, not encrypted.`;
      const system = SYSTEMS[keySystem] ?? keySystem;
      const ids = keyIds.length > 0 ? `, key id ${keyIds.join(', ')}` : '';
      return `${what}, decrypted with ${system}${ids}.`;
    }
    if (state === 'pictureless' || state === 'unavailable') return texts[state] ?? '';
    if (state === 'failed') return `${what} does not play.${REASONS[reason] ?? ''}`;
    if (state === 'stalled') return `${what} waits for the next segment.`;
    return undefined;
  }

  /** Without a format in the address, the browser decides which one plays. */
  function mark(label) {
    for (const link of document.querySelectorAll('.below nav a')) {
      if (link.textContent === label) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }

  window.playStage = () => {
    const stage = document.getElementById('stage');
    if (!stage) return;
    const note = document.getElementById('playback');
    note.textContent = '';
    let what = '';
    const write = () => {
      const isPaused = stage.querySelector('video')?.paused ?? true;
      note.textContent = note.dataset.state === 'playing' && !isPaused ? `It plays: ${what}` : what;
    };
    // Events of a video don't bubble.
    for (const name of ['play', 'pause']) stage.addEventListener(name, write, true);
    stage.addEventListener('playback', ({ detail }) => {
      what = describe(detail, note.dataset) ?? what;
      note.dataset.state = detail.state === 'ended' ? 'playing' : detail.state;
      write();
      if (FORMATS[detail.format]) mark(FORMATS[detail.format]);
    });
    stage.addEventListener('channelidle', () => {
      what = '';
      write();
    });
    window.channelEmbed.setup({ ...JSON.parse(stage.dataset.options), element: stage });
  };
  window.playStage();
})();
