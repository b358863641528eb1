// --- the page checks its own certificate ------------------------------------------------------------------------------
// The work is done by a worker, from the text of the checker in this file. The report's own coefficients must be the certificate's, too.
{
  const drop = byId("verify-drop"), input = byId("verify-file"), bar = byId("verify-progress"), said = byId("verify-verdict");
  const program = URL.createObjectURL(new Blob([byId("checker").textContent], { type: "text/javascript" }));
  let worker = null;

  const shownDiffers = (outputs) => {
    const exact = outputs.map((row) => new Map(row)), place = new Map(data.columns.map((column, f) => [column, f]));
    const beside = new Map(data.covariates);
    if (nTasks !== outputs.length || data.nKept !== data.nSelected) return null; // not all is shown: nothing to compare
    const scale = along ? along.scale : fixed.scale;
    for (let t = 0; t < nTasks; t++) {
      for (let f = 0; f < data.nKept; f++) {
        const wanted = exact[t].get(data.columns[f]) ?? 0;
        if (!(Math.abs(coefficient(f, t, chosen) - wanted) <= 0.51 * scale[f] * rowScale(t) + 1e-5 * Math.abs(wanted)) && !(Math.abs(wanted) < scale[f] * rowScale(t))) {
          return `the report shows another coefficient of “${data.features[f]}” in “${data.tasks[t]}” than its certificate has`;
        }
      }
      for (const [column, values] of beside) {
        const wanted = exact[t].get(column) ?? 0;
        if (!(Math.abs(values[t] - wanted) <= 1e-5 * Math.abs(wanted))) return `the report shows another coefficient of a covariate in “${data.tasks[t]}” than its certificate has`;
      }
      for (const [column, value] of exact[t]) {
        if (value !== 0 && !beside.has(column) && !(place.get(column) < data.nKept)) return `the certificate has a coefficient that the report does not show (${data.tasks[t]})`;
      }
    }
    return null;
  };
  // the marks of features, and what they are worth
  const marksDiffer = ({ open, sure, needs }) => {
    const left = new Set(open ?? []), always = new Set(sure ?? []), single = new Map(), several = new Map();
    for (const { features, delta } of needs) for (const j of features) {
      const known = features.length > 1 ? several : single;
      if (!known.has(j)) known.set(j, delta);
    }
    const mark = (column) => always.has(column) || single.has(column) ? 1 : several.has(column) ? 2 : open === null || left.has(column) ? 0 : -1;
    const worth = (column) => single.get(column) ?? several.get(column) ?? null;
    const differs = (column, f) => data.proven[f] !== mark(column) || (data.needs && (data.needs[f]?.delta ?? null) !== worth(column));
    const other = data.proven && data.needsCarried ? data.columns.findIndex(differs) : -1;
    return other < 0 ? null : `the report marks “${data.features[other]}” as its certificate does not`;
  };
  const listed = ({ open, sure, complete, needs, needsChecked }) => {
    if (!data.proven) return "";
    const elsewhere = ` which would take long here: run “${data.proofCommand}” for that.`;
    if (!complete) return ` Which features no optimum uses was checked, too; which ones every optimum uses was not,${elsewhere}`;
    const always = new Set([...(sure ?? []), ...needs.flatMap(({ features }) => features.length > 1 ? [] : features)]);
    const said = ` Which features this optimum needs is proved, too: ${count(always.size, "feature")} in every solution, ${whole(open === null ? 0 : data.nColumns - new Set(open).size)} in none. It does not say that they matter.`;
    return needsChecked && data.needsCarried ? said : ` Which features no optimum uses was checked, too; which ones it needs was not,${elsewhere}`;
  };
  // the numbers that the report gives in its text: a hair of rounding is allowed
  const toldDiffers = (verdict) => {
    const [objective, gap] = data.claims, hair = 1e-12 * Math.abs(verdict.claimed);
    if (objective !== null && !(Math.abs(objective - verdict.claimed) <= verdict.claimedGap + hair)) return `the report gives another objective (${objective}) than its certificate (${verdict.claimed})`;
    if (gap !== null && !(verdict.gap <= 1.01 * gap + hair)) return `the report says that no model is better by more than ${small(gap)}; its certificate and these data prove ${small(verdict.gap)}`;
    return null;
  };
  const show = (kind, title, ...words) => {
    bar.hidden = true;
    document.documentElement.dataset.verified = kind;
    const lines = words.length > 1 ? html("ul", {}, ...words.map((word) => html("li", {}, word))) : html("p", {}, ...words);
    said.replaceChildren(html("div", { class: `stamp ${kind === "verified" ? "good" : "bad"}` }, html("b", {}, title), lines));
  };
  const showVerdict = (file, verdict) => {
    const { kind, words } = verdict, instead = `Run “${data.proofCommand}” instead.`;
    if (kind === "verified") {
      const other = shownDiffers(verdict.coefficients) ?? toldDiffers(verdict) ?? marksDiffer(verdict);
      if (other) return show("differs", "Not verified: the report is not that of its certificate", other);
      return show(kind, `Verified on this computer, from this file (${file.name})`, `The data are those of the certificate, and no model of this kind is better by more than ${small(verdict.gap)} (claimed: ${small(verdict.claimedGap)}). The objective is ${quantity(verdict.claimed)}.${listed(verdict)}`);
    }
    if (kind === "differs") return show(kind, `Not verified: ${file.name} is not the certificate's data`, ...words);
    if (kind === "unproved") return show(kind, "Not verified: the data do not prove the claim", ...words);
    if (kind === "unsupported") return show(kind, "The browser cannot check this model", `It knows no proof for ${words[0]}. ${instead}`);
    return show(kind, "Not verified: this could not be read here", `${words[0]}. ${instead}`);
  };
  const check = (file) => {
    if (worker) worker.terminate();
    worker = new Worker(program);
    said.replaceChildren(html("p", { class: "explain" }, "reading"));
    bar.hidden = false;
    bar.value = 0;
    delete document.documentElement.dataset.verified;
    const end = (verdict) => { worker.terminate(); worker = null; showVerdict(file, verdict); };
    worker.onmessage = ({ data: news }) => {
      if (news.verdict) return end(news.verdict);
      bar.value = news.share;
      said.firstChild.textContent = news.stage;
    };
    worker.onerror = (event) => end({ kind: "unreadable", words: [event.message || "the check did not start"] });
    worker.postMessage({ file, proof: bytes(data.proof) });
  };
  input.addEventListener("change", () => { if (input.files.length) check(input.files[0]); });
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) check(event.dataTransfer.files[0]);
  });
}
