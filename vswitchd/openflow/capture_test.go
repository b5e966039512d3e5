package openflow

import (
	"bufio"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// capture is a message of a real ovs-ofctl (Open vSwitch 3.1), and the command that sent it.
type capture struct {
	command string
	bytes   []byte
}

// captures reads testdata/requests.txt.
func captures(t testing.TB) (all []capture) {
	t.Helper()
	f, err := os.Open("testdata/requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, command := bufio.NewScanner(f), ""
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "# "); ok {
			command = text
			continue
		}
		b, err := hex.DecodeString(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, capture{command, b})
	}
	if len(all) < 200 {
		t.Fatalf("only %d captures", len(all))
	}
	return all
}

// refused are the captured requests that this switch does not support, by command and kind of
// error.
var refused = map[string]ErrorKind{
	"dump-ipfix-bridge": NotConfigured,
}

// TestCapturesDecode decodes what ovs-ofctl sends for forty commands in four versions.
func TestCapturesDecode(t *testing.T) {
	for _, c := range captures(t) {
		_, err := Decode(c.bytes)
		kind, want := refused[strings.Fields(c.command)[1]]
		if strings.Contains(c.command, "max_len=100)") && c.bytes[1] == typeFlowMod {
			kind, want = BadActionExperimenterType, true
		}
		if want {
			if e, ok := err.(*Error); !ok || e.Kind != kind {
				t.Errorf("%s: %x: %v, want %v", c.command, c.bytes, err, kind)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %x: %v", c.command, c.bytes, err)
		}
	}
}
