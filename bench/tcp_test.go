package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// One tiny comparison: every side's stream moves, and the table has its lines.
func TestCompareTCP(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	antrail := filepath.Join(t.TempDir(), "antrail")
	if out, err := exec.Command("go", "build", "-o", antrail, "github.com/antrail/antrail/cmd/antrail").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var out bytes.Buffer
	o := TCPOptions{Rounds: 2, Limit: 200 * time.Millisecond, Binary: antrail, StateDir: t.TempDir()}
	if err := CompareTCP(t.Context(), o, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	line := regexp.MustCompile(`(?m)^(\d|min|median|max) +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d$`)
	if n := len(line.FindAllString(out.String(), -1)); n != 5 {
		t.Errorf("%d lines of two rounds, minimum, median and maximum:\n%s", n, out.String())
	}
	if !strings.Contains(out.String(), "Linux bridge  antrail afpacket   ratio     antrail afxdp   ratio\n") {
		t.Errorf("columns without their names:\n%s", out.String())
	}
	t.Log("\n" + out.String())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := CompareTCP(ctx, o, &out); !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v, want the context's error", err)
	}
}

func TestTCPOptionsAreChecked(t *testing.T) {
	for _, o := range []TCPOptions{{Rounds: -1}, {Limit: -1}, {Drivers: []string{"dpdk"}}} {
		if err := CompareTCP(t.Context(), o, &bytes.Buffer{}); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}
