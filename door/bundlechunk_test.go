package door

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// readByLine is ReadBundle with chunks of one line, each parsed before the next is read.
func readByLine(text string) (*flow.Bundle, error) {
	r := bundleReader{bundle: &flow.Bundle{}, same: map[uint64][]flow.Action{}, seed: maphash.MakeSeed()}
	for line := range strings.Lines(text) {
		r.no++
		if err := r.readLine([]byte(line)); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.no, err)
		}
		err := r.parseChunk()
		for len(r.parsing) > 0 {
			err = r.collect()
		}
		if err != nil {
			return nil, err
		}
	}
	return r.bundle, nil
}

// wantTwin reads a text both ways and compares.
func wantTwin(t *testing.T, text string) {
	t.Helper()
	slow, slowErr := readByLine(text)
	fast, err := ReadBundle(strings.NewReader(text), nil)
	if fmt.Sprint(err) != fmt.Sprint(slowErr) {
		t.Fatalf("by chunks: %v\nby lines: %v", err, slowErr)
	}
	if err == nil && !reflect.DeepEqual(fast, slow) {
		t.Fatal("chunks give another bundle than lines")
	}
}

// manyLines is text of several chunks, with names, groups and comments between the
// entries, and entries in parts.
func manyLines(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("flow add table=%d,priority=%d,tcp,tp_dst=%d actions=output:%d", i%7, i/60000, 1+i%60000, 1+i%50))
		switch {
		case i%1000 == 500:
			all = append(all, fmt.Sprintf("port 9 p%d", i), fmt.Sprintf("flow add priority=5,in_port=p%d,udp,tp_dst=%d actions=output:p%d", i, i, i))
		case i%1000 == 700:
			all = append(all, fmt.Sprintf("group add group_id=%d,type=all,bucket=output:1", i+1))
		case i%1000 == 900:
			all = append(all, "", "# the next ones", "NXST_FLOW reply (xid=0x4):")
		case i%50 == 7:
			for part := range 3 {
				all = append(all, fmt.Sprintf("flow add table=9,ip,nw_src=10.0.0.%d actions=conjunction(%d,1/2)", i/50%250, 3*i+part+1))
			}
		}
	}
	return all
}

// TestChunksAreLines: chunks give the same bundle and the same error as reading line by line.
func TestChunksAreLines(t *testing.T) {
	lines := manyLines(5000)
	wantTwin(t, strings.Join(lines, "\n"))
	wrong := []string{
		"flow add table=1 actions=output:nowhere", "flow add table=9,ip,nw_src=10.0.0.1 actions=conjunction(1,1/2)\nflow add table=9,ip,nw_src=10.0.0.1 actions=drop",
		"flow sub x", "port 4", "group delete 5", "flow add", "replace this",
	}
	for at := 0; at < len(lines); at += 997 {
		for i, w := range wrong {
			bad := append(append(append([]string{}, lines[:at]...), w), lines[at:]...)
			bad = append(bad, wrong[(i+1)%len(wrong)])
			wantTwin(t, strings.Join(bad, "\n"))
		}
	}
}

// TestChunksLeaveNoGoroutine: the goroutines of ReadBundle end, also after an error. synctest
// fails if one is left waiting.
func TestChunksLeaveNoGoroutine(t *testing.T) {
	text := strings.Join(manyLines(5000), "\n")
	synctest.Test(t, func(*testing.T) {
		for _, end := range []string{"", "\nflow add table=1 actions=output:nowhere\n" + text, "\nflow sub x"} {
			ReadBundle(strings.NewReader(text+end), nil)
		}
		ReadBundle(iotest.TimeoutReader(strings.NewReader(text)), nil)
	})
}

// TestWrongLineEndsReading: the error names the first wrong line, and the rest of a long
// text is not read.
func TestWrongLineEndsReading(t *testing.T) {
	const right, wrong = "table=0 actions=conjunction(1,1/2)\n", "table=0 actions=x\n"
	for _, n := range []int{0, 1, chunkBytes / len(right), 5 * chunkBytes / len(right)} {
		for _, after := range []string{"", "port 3 x", "first x", strings.Repeat(wrong, chunkBytes)} {
			_, err := ReadBundle(strings.NewReader(strings.Repeat(right, n)+wrong+after), nil)
			if want := fmt.Sprintf("line %d: column 17: ", n+1); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	r := &endless{line: right}
	r.read = func() string { return wrong }
	_, err := ReadBundle(r, nil)
	if most := (2*runtime.GOMAXPROCS(0)+2)*chunkBytes + maxLine; err == nil || r.bytes > most {
		t.Errorf("%v behind %d bytes; expected an error behind at most %d", err, r.bytes, most)
	}
}

// endless is an endless text, one line a read.
type endless struct {
	line  string
	read  func() string
	bytes int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.line)
	e.line = e.read()
	e.bytes += n
	return n, nil
}

// TestTornBundle: if reading fails, the error is the reader's and names no line.
func TestTornBundle(t *testing.T) {
	torn := io.MultiReader(strings.NewReader("table=0 actions=drop\ntable=0 acti"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if b, err := ReadBundle(torn, nil); b != nil || err == nil || !strings.Contains(err.Error(), io.ErrUnexpectedEOF.Error()) {
		t.Errorf("%v, %v", b, err)
	}
}

// TestEntriesAreAsAlone: each line gives the entry that it gives alone, with any lines of the
// same actions above.
func TestEntriesAreAsAlone(t *testing.T) {
	for _, lines := range [][]string{
		{"table=0,tcp actions=mod_tp_dst:80", "table=1,udp actions=mod_tp_dst:80", "table=2,tcp actions=mod_tp_dst:80"},
		{"table=0,tcp actions=clone(mod_tp_src:80)", "table=1,sctp actions=clone(mod_tp_src:80)"},
		{"table=0 actions=mod_vlan_vid:7", "table=1,vlan_tci=0x1000/0x1000 actions=mod_vlan_vid:7"},
		{"table=0 actions=set_vlan_pcp:7", "table=1,vlan_tci=0x1000/0x1000 actions=set_vlan_pcp:7"},
		{"table=0,tcp actions=set_field:80->tp_dst", "table=2,udp actions=set_field:80->udp_dst"},
		{"table=0 actions=drop", "table=1 actions=conjunction(4,1/2)", "table=2 actions=conjunction(4,1/2)", "table=2 actions=conjunction(5,1/2)"},
	} {
		b, err := ReadBundle(strings.NewReader(strings.Join(lines, "\n")), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range b.Add {
			alone, err := parse.Entry(lines[i], nil)
			if err != nil {
				t.Fatal(err)
			}
			if i == len(b.Add)-1 && len(b.Add) < len(lines) {
				e.Actions = e.Actions[:1] // the last line is a part of it
			}
			if !reflect.DeepEqual(alone, e) {
				t.Errorf("%s: alone %v, in a bundle %v", lines[i], alone, e)
			}
		}
	}
}

// TestBoundsOfBundles: the largest line is read, and one byte more is refused.
func TestBoundsOfBundles(t *testing.T) {
	const entry = "table=0 actions=drop"
	line := entry + strings.Repeat(" ", maxLine-1-len(entry)) + "\n"
	if _, err := ReadBundle(strings.NewReader(line), nil); err != nil {
		t.Error(err)
	}
	if _, err := ReadBundle(strings.NewReader(" "+line), nil); err == nil || !strings.HasPrefix(err.Error(), "line 1: it is longer than 65536 bytes") {
		t.Error(err)
	}
	if _, err := ReadBundle(bytes.NewReader(bytes.Repeat([]byte("\n"), maxBundle)), nil); err != nil {
		t.Error(err)
	}
	_, err := ReadBundle(bytes.NewReader(bytes.Repeat([]byte("\n"), maxBundle+1)), nil)
	if want := "line 4194305: a bundle has at most 4194304 lines; send several"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
