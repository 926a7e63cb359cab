/*
 * The stream tester: sends the form without leaving the page, so that keys stay in its fields and nowhere else, repeats
 * the test, and plays the stream next to the findings. Without script, the form is sent as any other.
 */
(() => {
  'use strict';

  const REPEAT_MS = 10_000;
  /** Parts of the report, which change by themselves while the stream plays. */
  const PARTS = ['verdict', 'findings', 'renditions', 'systems', 'test', 'summary'];

  const form = document.querySelector('[data-tester]');
  const button = form.querySelector('button');
  const repeat = form.querySelector('[data-repeat]');
  const progress = document.getElementById('progress');
  let timer;

  const itemIn = (root) => root.querySelector('#stage')?.dataset.options;

  /** Replaces the report; a stream that plays goes on when it was tested again. */
  function show(fresh) {
    const before = document.getElementById('report');
    const report = fresh.getElementById('report');
    const problems = 'tester-problems';
    document.getElementById(problems).replaceChildren(...fresh.getElementById(problems).childNodes);
    const parts = PARTS.map((id) => [before.querySelector(`#${id}`), report.querySelector(`#${id}`)]);
    const isAlike = itemIn(before) === itemIn(report) && parts.every(([part, next]) => !part === !next);
    if (itemIn(before) && isAlike) {
      for (const [part, next] of parts)
        if (part && part.innerHTML !== next.innerHTML) part.replaceChildren(...next.childNodes);
    } else if (report.childElementCount > 0 || !repeat.checked) {
      before.replaceWith(report);
      window.playStage();
    }
  }

  /** @param isAsked whether somebody pressed the button, and is to see what came of it. */
  async function test(isAsked) {
    clearTimeout(timer);
    button.disabled = true;
    progress.textContent = 'Testing…';
    try {
      const body = new URLSearchParams(new FormData(form));
      const answer = await fetch(form.action, { method: 'POST', headers: { accept: 'text/html' }, body });
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const hasReport = fresh.getElementById('report') !== null;
      if (hasReport) show(fresh);
      const findings = document.getElementById('findings');
      if (isAsked && findings?.getBoundingClientRect().bottom > innerHeight)
        document.getElementById('verdict').scrollIntoView();
      const problem = fresh.querySelector('main .card p')?.textContent ?? 'The test failed.';
      progress.textContent = hasReport ? '' : problem;
    } catch {
      progress.textContent = 'The emulator does not answer.';
    }
    button.disabled = false;
    if (repeat.checked) timer = setTimeout(test, REPEAT_MS);
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    test(true);
  });
  repeat.addEventListener('change', () => {
    clearTimeout(timer);
    if (repeat.checked && form.reportValidity() && !button.disabled) test();
  });
})();
