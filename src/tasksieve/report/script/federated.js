// --- features of a federated fit: lengths of rows of coefficients, at the value that is looked at ------------------

const entersAt = (f) => { for (let k = 0; k < nValues; k++) if (present(f, k)) return k; return nValues - 1; };
const longest = () => Math.max(1e-300, ...[...data.features.keys()].map((f) => strength(f, now)));
const featureColumns = [
  { label: "Feature", sort: (f) => data.features[f], cell: (f) => html("th", { scope: "row" }, html("div", { class: "name", title: data.features[f] }, cut(data.features[f], 40))) },
  { label: "Length of its row", number: true, down: true, sort: (f) => strength(f, now), cell: (f) => cell(meter(strength(f, now) / longest(), quantity(strength(f, now))), "number") },
];
if (path) featureColumns.push({ label: "Enters at α", number: true, down: true, class: "optional", sort: (f) => path.alphas[entersAt(f)], cell: (f) => cell(quantity(path.alphas[entersAt(f)]), "number optional") });
if (data.stable) featureColumns.push({ label: "In % of halves", number: true, down: true, sort: (f) => data.stable[f], cell: (f) => cell(`${Math.round(100 * data.stable[f])}\u00a0%`, "number") });
const featureTable = new PagedTable(byId("feature-table"), {
  caption: "Selected features, strongest first", noun: "feature", columns: featureColumns, text: (f) => data.features[f],
  rows: () => [...data.features.keys()].filter((f) => present(f, now)), size: 25, sorted: 1, down: true, empty: "No feature is selected.",
});
followers.push(() => featureTable.show());
