package trace

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
)

// captured is a packet of a capture.
type captured struct {
	port     string
	bytes    []byte
	length   int
	id       uint64
	comments []string
}

// readCapture reads a written capture.
func readCapture(t *testing.T, text string) (all []captured) {
	t.Helper()
	r, err := pcapgo.NewNgReader(strings.NewReader(text), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, about, options, err := r.ReadPacketDataWithOptions()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		i, err := r.Interface(about.InterfaceIndex)
		if err != nil || options.PacketID == nil {
			t.Fatalf("packet id %v, %v", options.PacketID, err)
		}
		all = append(all, captured{i.Name, b, about.Length, *options.PacketID, options.Comments})
	}
}

// TestPcapng: a capture has each packet of a recording where it entered and where
// it left.
func TestPcapng(t *testing.T) {
	ways := recorded(t)
	got := readCapture(t, printed(t, FormPcapng, ways))
	for _, way := range ways {
		for _, w := range way {
			id, err := strconv.ParseUint(w.ID, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			in := got[0]
			if in.port != "node-a:client-a" || !bytes.Equal(in.bytes, w.Frame) || in.length != w.Length || in.id != id {
				t.Errorf("entered: %+v, walk %s", in, w.ID)
			}
			if !strings.HasPrefix(in.comments[0], w.Verdict.Text) || !strings.Contains(in.comments[1], "→ SpoofGuard [") {
				t.Errorf("comments are %q", in.comments)
			}
			got = got[1:]
			for _, s := range w.Steps {
				if s.Kind != StepOutput {
					continue
				}
				if out := got[0]; out.port != "node-a:"+s.Port.Name || !bytes.Equal(out.bytes, s.Frame) || out.id != id {
					t.Errorf("left: %+v, walk %s", out, w.ID)
				}
				got = got[1:]
			}
		}
	}
	if len(got) != 0 {
		t.Errorf("%d packets more", len(got))
	}
}

// TestPcapngNames: a Pod's port has the Pod's name, long names are cut, and a cut
// packet keeps its whole length.
func TestPcapngNames(t *testing.T) {
	frame := slices.Clone(recorded(t)[0][0].Frame)
	frame[16], frame[17] = 0xff, 0 // the IP packet's length
	w := &Walk{ID: "ff", InPort: Port{No: 3, Name: "veth3", Pod: "default/client"}, Frame: frame, Verdict: Verdict{Text: strings.Repeat("a", 100000) + "\xff"}}
	got := readCapture(t, printed(t, FormPcapng, []Joined{{w}}))
	if len(got) != 1 || got[0].port != "default/client" || got[0].length != 14+0xff00 || len(got[0].comments[0]) != longest+len("…") {
		t.Errorf("got %+v", got)
	}
	if got := readCapture(t, printed(t, FormPcapng, nil)); len(got) != 0 {
		t.Errorf("a capture of nothing holds %+v", got)
	}
}
