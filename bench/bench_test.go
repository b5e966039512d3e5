package bench

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// One tiny comparison: both sides forward, and the table has its lines.
func TestCompareAFXDP(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	var out bytes.Buffer
	err := CompareAFXDP(context.Background(), Options{Rounds: 2, Frames: 20_000, Limit: 10 * time.Second}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	line := regexp.MustCompile(`(?m)^(\d|min|median|max) +\d+\.\d{3} Mpps +\d+\.\d{3} Mpps +\d+\.\d\d$`)
	if got := len(line.FindAllString(out.String(), -1)); got != 5 {
		t.Errorf("%d lines of figures, want 2 rounds and 3 summaries:\n%s", got, out.String())
	}
	t.Log("\n" + out.String())
}

func TestCompareStopsWithItsContext(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := CompareAFXDP(ctx, Options{}, &bytes.Buffer{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Size: 59}, {Size: 1515}, {Rounds: -1}, {Frames: -1}, {Limit: -1}} {
		if err := CompareAFXDP(context.Background(), o, &bytes.Buffer{}); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestReport(t *testing.T) {
	a, b := series{1e6, 2e6, 3e6, 4e6}, series{2e6, 1e6, 3e6, 1e6}
	if got := a.median(); got != 2.5e6 {
		t.Errorf("median of an even number is %v, want 2.5e6", got)
	}
	if got := b[:3].median(); got != 2e6 {
		t.Errorf("median of an odd number is %v, want 2e6", got)
	}
	if got := a.over(b).median(); math.Abs(got-1.5) > 1e-9 { // 0.5, 2, 1, 4
		t.Errorf("median ratio %v, want 1.5", got)
	}
	var out strings.Builder
	report(&out, a, b)
	want := "min        1.000 Mpps   1.000 Mpps     0.50\n" +
		"median     2.500 Mpps   1.500 Mpps     1.50\n" +
		"max        4.000 Mpps   3.000 Mpps     4.00\n"
	if out.String() != want {
		t.Errorf("report\n%swant\n%s", out.String(), want)
	}
}
