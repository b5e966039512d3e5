package answer

import (
	"net/url"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/ovstest"
)

// TestMetersPrintAsOVS gives the seed's meters to Open vSwitch, one by one: both dumps
// of all of them are the same text, empty lines included.
func TestMetersPrintAsOVS(t *testing.T) {
	s := ovstest.Start(t)
	got := answerTo(t, seedClient(t), "/meters", url.Values{})
	_, meters, _ := strings.Cut(got, "\n")
	count := 0
	for meter := range strings.SplitSeq("\n"+meters, "\nmeter=") {
		if meter = strings.TrimSpace(meter); meter == "" {
			continue
		}
		count++
		if out, err := s.Ofctl("add-meter", "meter="+strings.ReplaceAll(meter, "\n", " ")); err != nil {
			t.Fatal(out, err)
		}
	}
	want, err := s.Ofctl("dump-meters")
	if err != nil || count != 3 {
		t.Fatalf("%d meters, want 3; %v", count, err)
	}
	if got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
