/** The body of an answer with problems of one code. */
export const errorBody = (code: string, ...descriptions: unknown[]) => ({
  errors: descriptions.map((description) => ({ code, description })),
});

export const invalidBody = (...descriptions: unknown[]) => errorBody('invalid_body', ...descriptions);

/** The refusal of a change for which the key provider is to blame. */
export const providerFailed = (what: string) =>
  errorBody('key_provider_failed', `The key provider ${what}. No key file was changed.`);
