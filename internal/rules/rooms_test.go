package rules

import "testing"

// mostFiles is how many files of code a package may have: a reader has to be able to keep
// their names in mind. Tests and the package's comment (doc.go) do not count.
const mostFiles = 30

// largeRooms are packages that have more. A number here may only fall; tables has one more
// file for each new table.
var largeRooms = map[string]int{
	"tables": 60,
}

// TestPackagesAreSmall counts the files of each package.
func TestPackagesAreSmall(t *testing.T) {
	count := map[string]int{}
	for _, f := range read(t, false) {
		if f.path != f.dir+"/doc.go" {
			count[f.dir]++
		}
	}
	for dir, n := range count {
		switch most := largeRooms[dir]; {
		case most == 0 && n > mostFiles:
			t.Errorf("%s has %d files of code; %d is the most: split it along its subjects", dir, n, mostFiles)
		case most > 0 && n > most:
			t.Errorf("%s has %d files of code, and had %d: it is too large already", dir, n, most)
		case most > 0 && n < most:
			t.Errorf("%s has %d files of code: write that number into largeRooms, in place of %d", dir, n, most)
		}
	}
}
