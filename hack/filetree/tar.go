package filetree

import (
	"archive/tar"
	"bytes"
)

// Tar writes the tree as a tar archive, directories first, all owned by root, without times.
func (t Tree) Tar() ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range t.names() {
		e, ok := t[name]
		h := &tar.Header{Name: name, Format: tar.FormatPAX, Mode: 0o644}
		switch {
		case !ok:
			h.Typeflag, h.Name, h.Mode = tar.TypeDir, name+"/", 0o755
		case e.Link != "":
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.Link, 0o777
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.Content))
			if e.Executable {
				h.Mode = 0o755
			}
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.Content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
