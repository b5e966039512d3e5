package local

import (
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack/proto"
)

// TestEveryTimeoutHasAName: every timeout can be set by its own name.
func TestEveryTimeoutHasAName(t *testing.T) {
	var all proto.Timeouts
	v := reflect.ValueOf(&all).Elem()
	for i, n := range namedTimeouts(&all) {
		if n.at != v.Field(i).Addr().Interface() || !strings.EqualFold(n.name, v.Type().Field(i).Name) {
			t.Errorf("%s is the name of %s", n.name, v.Type().Field(i).Name)
		}
	}
	if n := len(namedTimeouts(&all)); n != v.NumField() {
		t.Errorf("%d names for %d timeouts", n, v.NumField())
	}
}
