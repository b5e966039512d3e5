package flowcache

import (
	"testing"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// TestShapesAreNotWidenedInVain: where the shape that served least would get too
// wide, it stays.
func TestShapesAreNotWidenedInVain(t *testing.T) {
	s := NewMegaflows(1<<10, &lookup.Scratch{})
	for i := range maxShapes {
		var wide lookup.KeyBits
		for w := range megaflowWords {
			wide[w] = 1 << i
		}
		if s.shapeFor(0, &wide) == nil {
			t.Fatal("a mask of megaflowWords words is refused")
		}
	}
	var more lookup.KeyBits
	more[megaflowWords] = 1
	if o := s.shapeFor(0, &more); o != nil || len(s.shapes[0]) != maxShapes || s.Count[telemetry.MegaflowWidened] != 0 {
		t.Errorf("shape %v, %d shapes, %d widened", o, len(s.shapes[0]), s.Count[telemetry.MegaflowWidened])
	}
}
