package learn

import (
	"strings"
	"testing"
)

// TestFold: on a terminal of 80 columns no line of a paragraph is longer, and no word is
// lost. Blocks stay as they are.
func TestFold(t *testing.T) {
	for _, l := range lessons(t) {
		got := fold(l.Text, 80)
		if a, b := strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(l.Text), " "); a != b {
			t.Errorf("lesson %d has other words", l.Number)
		}
		for _, block := range fence.FindAllString(l.Text, -1) {
			if !strings.Contains(got, block) {
				t.Errorf("lesson %d has no longer\n%s", l.Number, block)
			}
		}
		for line := range strings.SplitSeq(fence.ReplaceAllString(got, ""), "\n") {
			if len(line) > 80 && !stays(line) {
				t.Errorf("lesson %d: %q", l.Number, line)
			}
		}
		if fold(l.Text, 0) != l.Text || fold(l.Text, 120) != l.Text {
			t.Errorf("lesson %d is folded where there is room", l.Number)
		}
	}
	if got := fold("- one two three\n- four\n\n    code that stays\n", 9); got != "- one two\n  three\n- four\n\n    code that stays\n" {
		t.Errorf("%q", got)
	}
}
