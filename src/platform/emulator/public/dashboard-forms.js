/* What script adds to forms: a new row for a name and a value as soon as the last one is begun. */
'use strict';

document.addEventListener('input', (event) => {
  const rows = event.target.closest('[data-rows]');
  if (!rows?.lastElementChild.contains(event.target) || event.target.value === '') return;
  const row = rows.lastElementChild.cloneNode(true);
  for (const field of row.querySelectorAll('input, textarea')) {
    field.value = '';
    const label = field.getAttribute('aria-label');
    field.setAttribute(
      'aria-label',
      label.replace(/\d+$/, (number) => String(Number(number) + 1)),
    );
  }
  rows.append(row);
});
