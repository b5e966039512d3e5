package filetree

import (
	"bytes"
	"fmt"
)

// Modes of cpio entries, as of stat(2).
const (
	cpioDir  = 0o040755
	cpioFile = 0o100644
	cpioLink = 0o120777
)

// CPIO writes the tree as a cpio archive of the format "newc", directories first, all owned by
// root. Linux unpacks it as its first root
// (Documentation/driver-api/early-userspace/buffer-format.rst).
func (t Tree) CPIO() []byte {
	var b bytes.Buffer
	for _, name := range t.names() {
		e, ok := t[name]
		switch {
		case !ok:
			cpioEntry(&b, name, cpioDir, nil)
		case e.Link != "":
			cpioEntry(&b, name, cpioLink, []byte(e.Link))
		case e.Executable:
			cpioEntry(&b, name, cpioFile|0o111, e.Content)
		default:
			cpioEntry(&b, name, cpioFile, e.Content)
		}
	}
	cpioEntry(&b, "TRAILER!!!", 0, nil)
	return b.Bytes()
}

// cpioEntry writes one entry. The header is the magic number and thirteen numbers of eight
// hexadecimal digits. The name with a zero byte and the content follow, both padded to four
// bytes.
func cpioEntry(b *bytes.Buffer, name string, mode int, content []byte) {
	const inode, owner, group, links, time, device, sum = 0, 0, 0, 1, 0, 0, 0
	b.WriteString("070701")
	for _, v := range []int{inode, mode, owner, group, links, time, len(content), device, device, device, device, len(name) + 1, sum} {
		fmt.Fprintf(b, "%08x", v)
	}
	b.WriteString(name + "\x00")
	pad(b)
	b.Write(content)
	pad(b)
}

func pad(b *bytes.Buffer) { b.Write(make([]byte, -b.Len()&3)) }
