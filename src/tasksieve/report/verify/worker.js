// The work of one check: a file and a certificate come in; progress, then a verdict go out.
const verdictOf = async (file, proof) => {
  const progress = (stage) => (share) => postMessage({ stage, share });
  const cert = await readCertificate(new Blob([proof])), { header } = cert;
  const start = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  const zipped = start[0] === 0x50 && start[1] === 0x4b;
  // whether weights of a file of arrays were used is not in the certificate: the digests decide
  let wrong = [], tasks;
  for (const weighted of zipped ? [true, false] : [true]) {
    const parts = zipped ? await readArrays(header, file, weighted) : await readTable(header, file, progress("reading"));
    tasks = byTask(header, parts);
    const found = whatDiffers(header, tasks, progress("comparing digests"));
    if (!found.length) { wrong = []; break; }
    if (weighted) wrong = found;
  }
  if (wrong.length) return { kind: "differs", words: wrong };
  const numbers = checkClaims(cert, tasks, progress("proving"));
  wrong = brokenClaims(cert, numbers);
  if (wrong.length) return { kind: "unproved", words: wrong };
  const lists = brokenLists(cert, tasks, numbers);
  if (lists.wrong.length) return { kind: "unproved", words: lists.wrong };
  const needs = brokenNeeds(cert, numbers, progress("proving need"));
  if (needs !== null && needs.length) return { kind: "unproved", words: needs };
  return { kind: "verified", needs: cert.needs.map(({ features, delta }) => ({ features, delta })), needsChecked: needs !== null, gap: up(sub(numbers.primal, numbers.dual)), objective: up(numbers.primal), claimed: cert.objective, claimedGap: cert.gap, coefficients: cert.outputs, open: cert.open, sure: cert.sure, complete: lists.complete };
};
onmessage = async ({ data: { file, proof } }) => {
  try {
    postMessage({ verdict: await verdictOf(file, proof) });
  } catch (error) {
    const kind = error instanceof CannotCheck ? "unsupported" : error instanceof Differs ? "differs" : "unreadable";
    postMessage({ verdict: { kind, words: [error.message] } });
  }
};
