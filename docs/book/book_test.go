package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/programs"
	"github.com/gopacket/gopacket/pcapgo"
)

const top = "../.."

// pagesMade are the pages as they would be written now, made once.
var pagesMade map[string][]byte

func made(t *testing.T) map[string][]byte {
	t.Helper()
	if pagesMade == nil {
		files, err := generate(top)
		if err != nil {
			t.Fatal(err)
		}
		pagesMade = files
	}
	return pagesMade
}

// TestFresh holds the book in the repository against what would be written now.
func TestFresh(t *testing.T) {
	want := made(t)
	have := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(top, pages), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(filepath.Join(top, pages), name)
		have[filepath.ToSlash(rel)] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	stale := 0
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got, err := os.ReadFile(filepath.Join(top, pages, name))
		if err != nil || !bytes.Equal(got, want[name]) {
			stale++
			t.Errorf("%s/%s is not what would be written now: %s", pages, name, difference(string(got), string(want[name])))
		}
		delete(have, name)
	}
	for name := range have {
		stale++
		t.Errorf("%s/%s is no page of the book", pages, name)
	}
	if stale > 0 {
		t.Error("write the book anew, with: go run ./docs/book")
	}
}

// difference is the first line that is not the same.
func difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			line := func(all []string) string {
				if i < len(all) {
					return all[i][:min(len(all[i]), 200)]
				}
				return "(nothing)"
			}
			return "\n  there: " + line(a) + "\n  now:   " + line(b)
		}
	}
	return "the same"
}

// TestPages: every table of the pipeline has one, and every link leads somewhere.
func TestPages(t *testing.T) {
	files := made(t)
	for _, table := range tables.TableNames() {
		if len(files[table+".md"]) == 0 {
			t.Errorf("%s has no page", table)
		}
	}
	link := regexp.MustCompile(`\]\(([^)]+)\)`)
	links := 0
	for name, text := range files {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			file, _, _ := strings.Cut(m[1], "#")
			to := path.Join(path.Dir(name), file)
			if files[to] != nil {
				continue
			}
			if _, err := os.Stat(filepath.Join(top, pages, to)); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
	}
	if links < 500 {
		t.Errorf("only %d links", links)
	}
}

// TestProgramPages: each program has a page with all its tables and entries, each entry with
// the statement that it is for.
func TestProgramPages(t *testing.T) {
	for _, name := range programs.Names() {
		page := string(made(t)["programs/"+name+".md"])
		p, err := programs.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		prog, _, err := p.Flow(p.Sample())
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range p.Tables {
			if !strings.Contains(page, "\n## "+table.Name+"\n") {
				t.Errorf("%s: %s is missing", name, table.Name)
			}
		}
		explained := regexp.MustCompile(`(?m)^   for [WV]-\d\d.*: \S`).FindAllString(page, -1)
		if len(explained) != len(prog.Entries) {
			t.Errorf("%s: %d entries are explained of %d", name, len(explained), len(prog.Entries))
		}
	}
}

// TestEntriesAreExplained: every entry of the sample is on its table's page with
// an object behind it.
func TestEntriesAreExplained(t *testing.T) {
	number := regexp.MustCompile(`(?m)^\d+\. `)
	wanted := regexp.MustCompile(`(?m)^   for (Pod|Node|NodeConfig|ExternalEntity|Service|NetworkPolicy|ClusterNetworkPolicy|Egress|TrafficControl)/`)
	all := 0
	for _, table := range tables.TableNames() {
		_, part, _ := strings.Cut(string(made(t)[table+".md"]), "## Entries")
		n := len(number.FindAllString(part, -1))
		if m := len(wanted.FindAllString(part, -1)); m != n {
			t.Errorf("%s has %d entries and %d that are explained", table, n, m)
		}
		all += n
	}
	if all < 300 {
		t.Errorf("only %d entries", all)
	}
}

// TestPictures: all are XML, none is large.
func TestPictures(t *testing.T) {
	for name, text := range made(t) {
		if !strings.HasSuffix(name, ".svg") {
			continue
		}
		d := xml.NewDecoder(bytes.NewReader(text))
		var err error
		for err == nil {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) || len(text) > 40_000 {
			t.Errorf("%s, %d bytes: %v", name, len(text), err)
		}
	}
}

// TestCaptures: each walk has one, with every packet where it came in and where
// it left, between ports named after Pods.
func TestCaptures(t *testing.T) {
	for _, w := range walks {
		r, err := pcapgo.NewNgReader(bytes.NewReader(made(t)["walks/"+w.file+".pcapng"]), pcapgo.NgReaderOptions{WantMixedLinkType: true})
		if err != nil {
			t.Fatalf("%s: %v", w.file, err)
		}
		n := 0
		for ; err == nil; n++ {
			_, _, err = r.ReadPacketData()
		}
		least := len(w.packets) // each as it came in, and those that are not dropped as they left
		for _, s := range w.packets {
			if !s.gone {
				least++
			}
		}
		if n-1 < least || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d packets, at least %d wanted: %v", w.file, n-1, least, err)
		}
		pods := 0
		for i := range r.NInterfaces() {
			if f, err := r.Interface(i); err == nil && strings.HasPrefix(f.Name, "default/") {
				pods++
			}
		}
		if pods == 0 {
			t.Errorf("%s: no port is named after a Pod", w.file)
		}
	}
}

// TestBitsHaveNames: a mask over several fields is each of them, and of two names
// for the same bits the one that the reader uses.
func TestBitsHaveNames(t *testing.T) {
	exact := func(field flow.FieldID, value, mask uint64) layout.Bits {
		return layout.Bits{Field: field, Mask: flow.Value{Lo: mask}, Value: flow.Value{Lo: value}, Known: true}
	}
	policies := &tableSource{text: []string{"It reads APConjIDField."}}
	for _, c := range []struct {
		bits layout.Bits
		s    *tableSource
		want string
	}{
		{exact(flow.Reg0, 0x202, 0x20f), nil, "FromGatewayRegMark, RewriteMACRegMark"},
		{exact(flow.Reg0, 0x20, 0xf0), nil, "ToGatewayRegMark"},
		{exact(flow.Reg0+3, 7, 0xffffffff), policies, "APConjIDField=7"},
		{exact(flow.Reg0+3, 0x0a000001, 0xffffffff), nil, "EndpointIPField=10.0.0.1, APConjIDField=167772161"},
		{exact(flow.Reg0+4, 0x20050, 0x7ffff), nil, "EpUnionField=EpSelectedRegMark:80"},
		{exact(flow.Reg0+4, 0x10000, 0x70000), nil, "EpToSelectRegMark"},
		{exact(flow.CTMark, 0x10, 0x10), nil, "ServiceCTMark"},
	} {
		if got := strings.Join(texts([]layout.Bits{c.bits}, c.s, nil), ", "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.bits, got, c.want)
		}
	}
}

// TestNumbersAreKnown: a line tells whose addresses it has, each once, and not those of
// the object that is named anyway.
func TestNumbersAreKnown(t *testing.T) {
	k, err := newKnown(top)
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"ip,nw_dst=169.254.0.253 ct(table=ConntrackZone,zone=65521,nat)": "169.254.0.253 is the virtual Service address, zone 65521 is SNATCtZone",
		"ct(commit,nat(dst=10.10.0.24:80))":                              "10.10.0.24 is Pod web-a",
		"ct(commit,nat(dst=[fd00:10:10::24]:80))":                        "fd00:10:10::24 is Pod web-a",
		"set_field:aa:bb:cc:dd:ee:ff->eth_dst,dl_dst=aa:bb:cc:dd:ee:ff":  "aa:bb:cc:dd:ee:ff is the Global Virtual MAC",
		"ip,nw_src=10.10.0.26,nw_dst=10.10.1.0/24":                       "10.10.1.0/24 is the Pods of node-b",
		"nw_src=1.2.3.4,reg0=0x3/0xf,ct_state=+new":                      "",
	} {
		if got := k.of(line, "Pod/default/client-a"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestBadSources: the error for a table's file without a head names the table.
func TestBadSources(t *testing.T) {
	dir := t.TempDir()
	if _, err := readSources("", dir, tables.TableNames()); err == nil || !strings.Contains(err.Error(), "PipelineRootClassifier") {
		t.Errorf("no files: %v", err)
	}
	file := filepath.Join(dir, "classifier.go")
	if err := os.WriteFile(file, []byte("package tables\n\n// Classifier is.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSource("Classifier", file, dir); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("no head: %v", err)
	}
}

// TestRehearsalRefuses: what is not there has a name in the error.
func TestRehearsalRefuses(t *testing.T) {
	if _, err := answer.Rehearse(filepath.Join(top, objects), "nobody"); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a Node that is not there: %v", err)
	}
	r, err := answer.Rehearse(filepath.Join(top, objects), bookNode)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, _, err := r.Send(bookNode, "no-port", nil); err == nil || !strings.Contains(err.Error(), "no-port") {
		t.Errorf("a port that is not there: %v", err)
	}
	if _, _, err := r.Send("nobody", "x", nil); err == nil || r.Client("nobody") != nil {
		t.Errorf("a Node that is not there: %v", err)
	}
}
