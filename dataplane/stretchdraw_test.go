package dataplane

import "testing"

// TestShapesAreNotWidenedInVain: where the shape that served least would get too
// wide, it stays.
func TestShapesAreNotWidenedInVain(t *testing.T) {
	s := newStretches(1<<10, &lookupScratch{})
	for i := range maxShapes {
		var wide keyBits
		for w := range stretchWords {
			wide[w] = 1 << i
		}
		if s.shape(0, &wide) == nil {
			t.Fatal("a mask of stretchWords words is refused")
		}
	}
	var more keyBits
	more[stretchWords] = 1
	if o := s.shape(0, &more); o != nil || len(s.shapes[0]) != maxShapes || s.count[StretchWidened] != 0 {
		t.Errorf("shape %v, %d shapes, %d widened", o, len(s.shapes[0]), s.count[StretchWidened])
	}
}
