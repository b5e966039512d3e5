package pods

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
)

// TestIperf checks that both lines of iperf3 follow those of streams, and that an error says why the
// client reached no server.
func TestIperf(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if why := missingIperf(); why != nil {
		t.Skip(why)
	}
	p, err := openDirect()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}()
	all, err := measureBulk(t.Context(), p, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	lines := all[max(0, len(all)-2):]
	for i, want := range []string{"iperf3, one stream", "iperf3, 8 streams together"} {
		if l := lines[i]; l.Name != want || l.Unit != "Gbit/s" || l.Value <= 0 {
			t.Errorf("line %d is %+v, want %s", i, l, want)
		}
	}
	p.listens, p.address = p.address, plainServer+":81"
	if rate, err := p.runIperf(t.Context(), 1, leastIperfBytes); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a server: %v Gbit/s, %v", rate, err)
	}
}

// TestIperfMissing checks that the report names the package if the program is missing.
func TestIperfMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var c report.Comparison
	var said strings.Builder
	noteIperf(&rig.Rig{Progress: &said}, &c)
	const want = "lines iperf3: not present (there is no iperf3 in PATH; Debian's package iperf3 has it)."
	if len(c.Notes) != 1 || c.Notes[0] != want || said.String() != want+"\n" {
		t.Errorf("notes %q, said %q; want %q", c.Notes, said.String(), want)
	}
}

// FuzzIperfReport checks that a report gives a rate above 0, or an error.
func FuzzIperfReport(f *testing.F) {
	for _, text := range []string{
		`{"start":{"version":"iperf 3.12"},"end":{"sum_sent":{"bits_per_second":2e9},"sum_received":{"bytes":125000000,"bits_per_second":1e9}}}`,
		`{"start":{},"error":"unable to connect to server: Connection refused"}`,
		`{"end":{"sum_received":{"bits_per_second":0}}}`, `{"end":[]}`, `{}`, ``, "iperf3: error",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rate, err := readIperfReport(text)
		if (rate > 0) == (err != nil) || math.IsInf(rate, 0) {
			t.Errorf("%q: %v Gbit/s, %v", text, rate, err)
		}
	})
}
