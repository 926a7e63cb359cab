import { z } from 'zod';
import type { Checked } from '../../drm/bytes';

const text = z.string('must be a string');

/** A string that a pure check takes; the check's sentence becomes the problem of the field. */
export function checkedText<T>(check: (text: string) => Checked<T>): z.ZodType<string> {
  return text.superRefine((value, context) => {
    const checked = check(value);
    if (!checked.ok) context.addIssue({ code: 'custom', message: checked.fault.sentence });
  });
}

/** The same for a value that is decoded to be used: what the check made of it. */
export function checkedValue<T>(check: (text: string) => Checked<T>): z.ZodType<T> {
  return text.transform((value, context) => {
    const checked = check(value);
    if (checked.ok) return checked.value;
    context.addIssue({ code: 'custom', message: checked.fault.sentence });
    return z.NEVER;
  });
}
