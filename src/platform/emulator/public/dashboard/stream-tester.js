/*
 * The stream tester: sends the form without leaving the page, so that keys stay in its fields and nowhere else, and
 * plays the stream next to the findings. Without script, the form is sent as any other.
 */
(() => {
  'use strict';

  const form = document.querySelector('[data-tester]');
  const button = form.querySelector('button');
  const progress = document.getElementById('progress');

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.disabled = true;
    progress.textContent = 'Testing…';
    try {
      const body = new URLSearchParams(new FormData(form));
      const answer = await fetch(form.action, { method: 'POST', headers: { accept: 'text/html' }, body });
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const report = fresh.getElementById('report');
      if (report) {
        for (const id of ['tester-problems', 'report'])
          document.getElementById(id).replaceWith(fresh.getElementById(id));
        window.playStage();
        // A live region that comes with its text is not read out.
        const verdict = document.getElementById('verdict');
        if (verdict) announce(verdict.textContent);
        const findings = document.getElementById('findings');
        if (findings?.getBoundingClientRect().bottom > innerHeight) verdict.scrollIntoView();
      }
      const problem = fresh.querySelector('main .card p')?.textContent ?? 'The test failed.';
      progress.textContent = report ? '' : problem;
    } catch {
      progress.textContent = 'The emulator does not answer.';
    }
    button.disabled = false;
  });
})();
