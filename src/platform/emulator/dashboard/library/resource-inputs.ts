import * as z from 'zod';
import { type Content, type Html, html } from '../../../../http/html';
import type { SetField, SetFields } from '../../resources/fields';
import type { FormBody } from '../forms';
import { kindOf, labelOf, lines, pairsOf, WAS } from './resource-form';

/** Inputs for fields, filled in as this form says. @param scope keeps the ids of several forms of a page apart. */
export function inputsOf(fields: SetFields, sent: FormBody, scope: string): Html {
  const was = lines(sent.text(WAS));
  const inputs = Object.entries(fields).map(([name, field]) => {
    const label = labelOf(name);
    const asked = { name, label, hint: hintOf(field, label), scope, isNeeded: 'default' in field };
    return inputOf(asked, field.schema, sent, field.default);
  });
  return html`${was !== '' && html`<input type="hidden" name="${WAS}" value="${was}">`}${inputs}`;
}

interface Asked {
  readonly name: string;
  readonly label: string;
  readonly hint: string | undefined;
  readonly scope: string;
  /** Whether it always has a value. */
  readonly isNeeded: boolean;
}

function inputOf(asked: Asked, schema: z.ZodType, sent: FormBody, otherwise?: unknown): Html {
  const { name, label, scope, isNeeded } = asked;
  const id = `field-${scope}-${name.replaceAll('.', '-')}`;
  const hinted = (more: string | undefined) =>
    [asked.hint, more].filter((hint) => hint !== undefined).join(' ');
  const framed = (input: Html, more?: string, isWide = false) => {
    const hint = hinted(more);
    return html`<div class="field${isWide && ' field-wide'}"><label for="${id}">${label}</label>${input}${
      hint !== '' && html`<p class="hint" id="${id}-hint">${hint}</p>`
    }</div>`;
  };
  const told = (more?: string): Content => hinted(more) !== '' && html` aria-describedby="${id}-hint"`;
  const text = sent.has(name)
    ? sent.text(name)
    : typeof otherwise === 'object'
      ? ''
      : String(otherwise ?? '');
  const kind = kindOf(schema);
  switch (kind.kind) {
    case 'choice': {
      const none = isNeeded ? [] : [''];
      return framed(
        html`<select id="${id}" name="${name}"${told()}>${[...none, ...kind.values].map(
          (value) =>
            html`<option value="${value}"${value === text && html` selected`}>${value === '' ? 'not chosen' : spoken(value)}</option>`,
        )}</select>`,
      );
    }
    case 'flag':
      return html`<div class="field"><label class="box"><input type="checkbox" id="${id}" name="${name}" value="on"${text === 'on' && html` checked`}> <span>${asked.hint?.replace(/^Whether to (.*)\.$/, (_hint, what: string) => labelOf(what)) ?? label}</span></label></div>`;
    case 'number':
      return framed(
        html`<input id="${id}" name="${name}" type="number" value="${text}" step="${kind.whole ? 1 : 'any'}"${
          kind.least !== undefined && html` min="${kind.least}"`
        }${kind.most !== undefined && html` max="${kind.most}"`}${isNeeded && html` required`}${told()}>`,
      );
    case 'moment':
      return framed(
        html`<input id="${id}" name="${name}" type="datetime-local" step="1" value="${text}"${told('In UTC.')}>`,
        'In UTC.',
      );
    case 'long':
      return framed(area(id, name, text, 4, html` dir="auto"${told()}`), undefined, true);
    case 'words':
      return framed(
        area(id, name, text, 2, html` dir="auto"${told('One on each line.')}`),
        'One on each line.',
      );
    case 'json':
      return framed(
        area(id, name, text, 8, html` class="code" spellcheck="false"${told('As a JSON object.')}`),
        'As a JSON object.',
        true,
      );
    case 'pairs':
      return pairs(id, asked, sent);
    case 'group':
      return group(asked, kind.fields, sent);
    case 'id':
      return framed(
        html`<input id="${id}" name="${name}" value="${text}" autocomplete="off"${told('Its id.')}>`,
        'Its id.',
      );
    default: {
      const most =
        schema instanceof z.ZodString && schema.maxLength !== null && html` maxlength="${schema.maxLength}"`;
      const type = kind.kind === 'address' ? 'url' : 'text';
      return framed(
        html`<input id="${id}" name="${name}" type="${type}" value="${text}" autocomplete="off" dir="auto"${most}${told()}>`,
      );
    }
  }
}

/** The fields within a field. Groups of groups are told apart by their names alone, without a frame in a frame. */
function group(asked: Asked, fields: Readonly<Record<string, z.ZodType>>, sent: FormBody): Html {
  const { name, label, hint } = asked;
  const inputs = Object.entries(fields).map(([inner, one]) => {
    const own = labelOf(inner);
    const path = { ...asked, name: `${name}.${inner}`, hint: undefined, isNeeded: false };
    const kind = kindOf(one);
    if (kind.kind !== 'group') return inputOf({ ...path, label: own }, one, sent);
    const isOuter = Object.values(kind.fields).every((each) => kindOf(each).kind === 'group');
    if (!isOuter) return inputOf({ ...path, label: own }, one, sent);
    return Object.entries(kind.fields).map(([deeper, each]) =>
      inputOf(
        { ...path, name: `${path.name}.${deeper}`, label: `${own}: ${labelOf(deeper).toLowerCase()}` },
        each,
        sent,
      ),
    );
  });
  return html`<fieldset class="field group${hint === undefined && ' group-inner'}"><legend>${label}</legend>${
    hint !== undefined && html`<p class="hint">${hint}</p>`
  }<div class="fields">${inputs}</div></fieldset>`;
}

/** A line feed behind the tag is not part of the text, so one at its start must not stand there. */
function area(id: string, name: string, text: string, rows: number, more: Content): Html {
  return html`<textarea id="${id}" name="${name}" rows="${rows}"${more}>
${text}</textarea>`;
}

function spoken(value: string): string {
  const [name = '', order] = value.split(':');
  return order === undefined
    ? labelOf(name)
    : `${labelOf(name)}, ${order === 'asc' ? 'ascending' : 'descending'}`;
}

/** How many names and values can be added without script. */
const MORE_PAIRS = 2;

function pairs(id: string, { name, label, hint }: Asked, sent: FormBody): Html {
  const given = pairsOf(sent, name);
  const rows = [...given, ...Array.from({ length: MORE_PAIRS }, () => ['', ''] as const)];
  return html`<fieldset class="field"${hint !== undefined && html` aria-describedby="${id}-hint"`}><legend>${label}</legend>
    <div class="pairs" data-rows>${rows.map(
      ([key, value], place) => html`<div class="pair">
        <input name="${name}.name" value="${key}" aria-label="${label}: name ${place + 1}" placeholder="Name" autocomplete="off" dir="auto">
        <textarea name="${name}.value" rows="1" aria-label="${label}: value ${place + 1}" placeholder="Value" dir="auto">
${value}</textarea></div>`,
    )}</div>
    ${hint !== undefined && html`<p class="hint" id="${id}-hint">${hint} To remove one, empty its name and its value.</p>`}
  </fieldset>`;
}

/** Sentences behind the first one are for those who write programs. */
function hintOf({ says }: SetField, label: string): string | undefined {
  const [first = ''] = says.split(/(?<=\.)\s/);
  const said = first.toLowerCase().replace(/^the |\.$/g, '');
  return said === label.toLowerCase() ? undefined : first.replaceAll('`', '');
}
