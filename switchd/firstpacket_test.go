package switchd

import (
	"net/netip"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// TestEndpointOf: the bucket of an endpoint is known in both families.
func TestEndpointOf(t *testing.T) {
	for text, want := range map[string]string{
		"set_field:0xa0a0018->reg3,set_field:0x50/0xffff->reg4,resubmit(,7)":                              "10.10.0.24:80",
		"set_field:0x10000000/0x10000000->reg4,set_field:0xa0a0018->reg3,set_field:0x50/0xffff->reg4":     "10.10.0.24:80",
		"set_field:0xfd000010001000000000000000000024->xxreg3,set_field:0x1f90/0xffff->reg4,resubmit(,7)": "[fd00:10:10::24]:8080",
		"set_field:0x4000/0x4000->reg0,resubmit(,7)":                                                      "",
	} {
		actions, err := parse.Actions(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := EndpointOf(&flow.Bucket{Actions: actions})
		if ok != (want != "") || ok && got != netip.MustParseAddrPort(want) {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}
