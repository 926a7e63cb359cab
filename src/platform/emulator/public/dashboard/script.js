/* Adds to every page: copy buttons, states that are kept up to date, new rows of names and values, filters that apply at once. */
'use strict';

const REFRESH_MS = 4000;
document.documentElement.classList.add('js');
/** For screen readers; the other scripts call it as well. */
const announce = (text) => {
  document.getElementById('announcement').textContent = text;
};

document.addEventListener('click', async ({ target }) => {
  const button = target.closest('[data-copy]');
  if (!button) return;
  const source = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(source.textContent);
    announce('Copied.');
    button.classList.add('copied');
    setTimeout(() => button.classList.remove('copied'), 1500);
  } catch {
    // Over plain HTTP to another machine there is no clipboard.
    getSelection().selectAllChildren(source);
    announce('Selected. Copy it with the keyboard.');
  }
});

// A new row as soon as the last one is begun.
document.addEventListener('input', ({ target }) => {
  const rows = target.closest('[data-rows]');
  if (!rows?.lastElementChild.contains(target) || target.value === '') return;
  const row = rows.lastElementChild.cloneNode(true);
  for (const field of row.querySelectorAll('input, textarea')) {
    field.value = '';
    field.ariaLabel = field.ariaLabel.replace(/\d+$/, (number) => String(Number(number) + 1));
  }
  rows.append(row);
});

const regions = () => [...document.querySelectorAll('[data-live]')];
// As the server sent them: parts of the page may have been opened since.
const sent = new Map(regions().map((region) => [region.id, region.innerHTML]));

/** Whether the user has changed the value of a field. */
function isEdited(field) {
  if (field.type === 'checkbox') return field.checked !== field.defaultChecked;
  if (field.tagName !== 'SELECT') return field.value !== field.defaultValue;
  const sentOption = [...field.options].findIndex((option) => option.defaultSelected);
  return field.selectedIndex !== Math.max(sentOption, 0);
}

function isInUse(region) {
  const selection = getSelection();
  return (
    region.querySelector(':focus-visible, [data-busy]') ||
    [...region.querySelectorAll('input, textarea, select')].some(isEdited) ||
    (!selection.isCollapsed && region.contains(selection.anchorNode))
  );
}

/** Brings the live regions up to date, but those in use. */
async function refresh() {
  if (regions().length === 0) return;
  const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  for (const region of regions()) {
    const next = fresh.getElementById(region.id);
    if (!next || next.innerHTML === sent.get(region.id) || isInUse(region)) continue;
    sent.set(region.id, next.innerHTML);
    for (const { id } of region.querySelectorAll('details[open]'))
      next.querySelector(`[id="${CSS.escape(id)}"]`)?.setAttribute('open', '');
    // Focused by the pointer, it is not in use, but the keyboard may go on from there.
    const focused = region.contains(document.activeElement) && document.activeElement.outerHTML;
    region.replaceChildren(...next.childNodes);
    const again = [...region.querySelectorAll('a, button, summary')].find(
      (each) => each.outerHTML === focused,
    );
    again?.focus({ preventScroll: true });
  }
}

/** Each time after the answer to the last one: on a slow connection, they would come ever later. */
async function watch() {
  // While the emulator is away, the page stays as it is.
  if (document.visibilityState !== 'hidden') await refresh().catch(() => undefined);
  setTimeout(watch, REFRESH_MS);
}
setTimeout(watch, REFRESH_MS);
document.addEventListener('dashboard-changed', () => refresh().catch(() => undefined));

document.addEventListener('change', ({ target }) => target.closest('.search select')?.form.requestSubmit());
