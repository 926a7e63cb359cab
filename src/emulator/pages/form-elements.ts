import { type Content, type Html, html } from '../../http/html';

interface Field {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
}

export interface TextField extends Field {
  readonly value: string;
  readonly type?: 'text' | 'url' | 'number';
  readonly required?: boolean;
  readonly most?: number;
}

/** A text field with its label; the hint is read out with it. */
export function textField({ name, label, hint, value, type = 'text', required, most }: TextField): Html {
  return html`<div class="field">
    <label for="field-${name}">${label}</label>
    <input id="field-${name}" name="${name}" type="${type}" value="${value}" autocomplete="off"${
      required === true && html` required`
    }${most !== undefined && html` maxlength="${most}"`}${describedBy(name, hint)}>
    ${hintOf(name, hint)}
  </div>`;
}

export interface Choice {
  readonly value: string;
  readonly label: string;
}

export interface SelectField extends Field {
  readonly value: string;
  readonly choices: readonly Choice[];
}

export function selectField({ name, label, hint, value, choices }: SelectField): Html {
  return html`<div class="field">
    <label for="field-${name}">${label}</label>
    <select id="field-${name}" name="${name}"${describedBy(name, hint)}>
      ${choices.map(
        (choice) =>
          html`<option value="${choice.value}"${choice.value === value && html` selected`}>${choice.label}</option>`,
      )}
    </select>
    ${hintOf(name, hint)}
  </div>`;
}

export interface CheckboxField extends Field {
  readonly values: readonly string[];
  readonly choices: readonly Choice[];
}

/** Boxes of which several may be ticked. */
export function checkboxField({ name, label, hint, values, choices }: CheckboxField): Html {
  return html`<fieldset class="field"${describedBy(name, hint)}>
    <legend>${label}</legend>
    <div class="boxes">${choices.map(
      (choice) =>
        html`<label class="box"><input type="checkbox" name="${name}" value="${choice.value}"${
          values.includes(choice.value) && html` checked`
        }> <span>${choice.label}</span></label>`,
    )}</div>
    ${hintOf(name, hint)}
  </fieldset>`;
}

/** Which of the account's sites: no question when there is only one. */
export function siteField(sites: readonly string[], chosen: string): Html {
  const choices = sites.map((id) => ({ value: id, label: id }));
  if (sites.length > 1) return selectField({ name: 'site', label: 'Site', value: chosen, choices });
  return html`<input type="hidden" name="site" value="${sites[0]}">`;
}

/** Which of the account's sites, when several may be meant. */
export function sitesField(sites: readonly string[], chosen: readonly string[]): Html {
  const choices = sites.map((id) => ({ value: id, label: id }));
  if (sites.length > 1) return checkboxField({ name: 'site', label: 'Sites', values: chosen, choices });
  return html`<input type="hidden" name="site" value="${sites[0]}">`;
}

export interface Form {
  readonly id: string;
  readonly title: string;
  readonly path: string;
  readonly submit: string;
  /** What was wrong when it was sent. */
  readonly problems: readonly string[];
  readonly fields: Content;
}

/** A form in a section of its own, with what was wrong with it above its fields. */
export function form({ id, title, path, submit, problems, fields }: Form): Html {
  return html`<section class="card" id="${id}" aria-labelledby="${id}-title">
    <h2 id="${id}-title">${title}</h2>
    ${
      problems.length > 0 &&
      html`<div class="message message-bad" role="alert"><p>This was not saved:</p><ul>${problems.map(
        (problem) => html`<li>${problem}</li>`,
      )}</ul></div>`
    }
    <form method="post" action="${path}" class="form">
      <div class="fields">${fields}</div>
      <p><button class="button button-main">${submit}</button></p>
    </form>
  </section>`;
}

/** A list above the form that adds to it; the form comes first while something is wrong with it. */
export function listAndForm(list: Content, form: Content, problems: readonly string[]): Html {
  return problems.length > 0 ? html`${form}${list}` : html`${list}${form}`;
}

/** Leads to a form further down the page. */
export function linkToForm(id: string, label: string): Html {
  return html`<a class="button button-main" href="#${id}">${label}</a>`;
}

function describedBy(name: string, hint: string | undefined): Content {
  return hint !== undefined && html` aria-describedby="hint-${name}"`;
}

function hintOf(name: string, hint: string | undefined): Content {
  return hint !== undefined && html`<p class="hint" id="hint-${name}">${hint}</p>`;
}
