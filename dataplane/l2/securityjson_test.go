package l2

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/wiretest"
)

// TestPortSecurityCrosses: a port's security arrives in another process as it was sent.
func TestPortSecurityCrosses(t *testing.T) {
	f := wiretest.New(t, 53)
	for range 50 {
		wiretest.Same(t, wiretest.Value[PortSecurity](f))
	}
	var s PortSecurity
	if err := json.Unmarshal([]byte(`{"macs":["0a:00:00"]}`), &s); err == nil || !strings.Contains(err.Error(), "0a:00:00") {
		t.Errorf("%v, want an error that names 0a:00:00", err)
	}
}

// FuzzPortSecurity: what the decoder takes is sent as the same text again.
func FuzzPortSecurity(f *testing.F) {
	fill := wiretest.New(f, 53)
	for range 3 {
		text, err := json.Marshal(wiretest.Value[PortSecurity](fill))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s PortSecurity
		if json.Unmarshal(text, &s) != nil {
			return
		}
		first, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(wiretest.Cross(t, s)); err != nil || string(again) != string(first) {
			t.Fatalf("%s\narrives as\n%s\n%v", first, again, err)
		}
	})
}
