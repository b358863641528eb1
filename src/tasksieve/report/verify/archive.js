// Zip archives and the arrays of NumPy in them.
class Unreadable extends Error {}
const zipEntries = async (file) => {
  const tail = new DataView(await file.slice(Math.max(0, file.size - 65557)).arrayBuffer());
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== 0x06054b50) end--;
  if (end < 0) throw new Unreadable("it is not a zip archive");
  const count = tail.getUint16(end + 10, true), bytes = tail.getUint32(end + 12, true), start = tail.getUint32(end + 16, true);
  if (start === 0xffffffff || count === 0xffff) throw new Unreadable("archives beyond 4 GB cannot be read here");
  if (start + bytes > file.size) throw new Unreadable("the archive is cut off");
  const view = new DataView(await file.slice(start, start + bytes).arrayBuffer()), found = new Map();
  for (let k = 0, at = 0; k < count; k++) {
    if (at + 46 > view.byteLength || view.getUint32(at, true) !== 0x02014b50) throw new Unreadable("the archive's list of files is damaged");
    const [method, packed, length] = [view.getUint16(at + 10, true), view.getUint32(at + 20, true), view.getUint32(at + 24, true)];
    const [nameLength, extra, comment] = [28, 30, 32].map((place) => view.getUint16(at + place, true));
    const name = new TextDecoder().decode(new Uint8Array(view.buffer, at + 46, nameLength));
    if (found.has(name)) throw new Unreadable(`the archive holds ${name} twice`);
    found.set(name, { method, packed, length, offset: view.getUint32(at + 42, true) });
    at += 46 + nameLength + extra + comment;
  }
  return found;
};
const zipMember = async (file, entry) => {
  const head = new DataView(await file.slice(entry.offset, entry.offset + 30).arrayBuffer());
  if (head.byteLength < 30 || head.getUint32(0, true) !== 0x04034b50) throw new Unreadable("the archive is damaged");
  const start = entry.offset + 30 + head.getUint16(26, true) + head.getUint16(28, true);
  const body = file.slice(start, start + entry.packed);
  if (body.size !== entry.packed) throw new Unreadable("the archive is cut off");
  if (entry.method === 0) return body.arrayBuffer();
  if (entry.method !== 8) throw new Unreadable(`compression method ${entry.method} is not known`);
  return new Response(body.stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
};

// An array: its shape, whether it runs along columns, and its values as numbers, booleans or words.
const readNpy = (buffer, name) => {
  const bytes = new Uint8Array(buffer);
  const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
  if (bytes.length < 12 || magic.some((byte, k) => bytes[k] !== byte)) throw new Unreadable(`${name} is not an array of NumPy`);
  const view = new DataView(buffer), wide = bytes[6] > 1;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true), start = (wide ? 12 : 10) + length;
  const text = new TextDecoder().decode(bytes.subarray(wide ? 12 : 10, start));
  const said = /^\{'descr': '([<|>=]?)([a-zA-Z])(\d+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \}\s*$/.exec(text);
  if (!said) throw new Unreadable(`${name}: arrays of this kind cannot be read here (${text.trim().slice(0, 80)})`);
  const [, order, kind, width, fortran, dims] = said;
  const shape = dims.split(",").map((word) => word.trim()).filter(Boolean).map(Number);
  const total = shape.reduce((a, b) => a * b, 1), each = Number(width) * (kind === "U" ? 4 : 1);
  if (total * each !== bytes.length - start) throw new Unreadable(`${name} holds ${bytes.length - start} bytes, its shape needs ${total * each}`);
  const body = buffer.slice(start);
  let values;
  if (kind === "U" && order !== ">") {
    const codes = new Uint32Array(body), n = Number(width);
    values = Array.from({ length: total }, (_, k) => {
      let word = "";
      for (let c = k * n; c < (k + 1) * n && codes[c]; c++) word += String.fromCodePoint(codes[c]);
      return word;
    });
  } else {
    const types = { f8: Float64Array, f4: Float32Array, i8: BigInt64Array, u8: BigUint64Array, i4: Int32Array, u4: Uint32Array, i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array, b1: Uint8Array };
    const Type = types[kind + width];
    if (!Type || order === ">") throw new Unreadable(`${name}: arrays of type ${order}${kind}${width} cannot be read here`);
    values = new Type(body);
    if (kind === "b") values = Array.from(values, Boolean);
    else if (width === "8" && kind !== "f") {
      if (values.some((value) => value > 9007199254740992n || value < -9007199254740992n)) throw new Unreadable(`${name} holds whole numbers beyond 2^53`);
      values = Float64Array.from(values, Number);
    }
  }
  return { shape, fortran: fortran === "True", values, type: kind + width };
};
