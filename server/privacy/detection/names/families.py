"""Family names that are common where English is spoken, beside which a word is a given name that else is something else.

Names that are also everyday words of English are left out.
"""

from __future__ import annotations

FAMILY_NAMES = frozenset(
    "Adams Ahmed Alexander Ali Allen Alvarez Anderson Andrews Armstrong Arnold Atkinson Austin Bailey Baldwin Barnes Barnett Barrett Bennett Bradley Brennan Brooks Bryant "
    "Burke Burton Butler Byrne Campbell Carlson Carpenter Carroll Castillo Castro Chan Chapman Chavez Chen Chung Clark Clarke Cohen Coleman Collins Connolly Conway Cooper Crawford Cruz "
    "Cunningham Curtis Daly Daniels Davidson Davies Davis Dawson Delgado Diaz Dixon Doe Doherty Donnelly Dougherty Douglas Doyle Duncan Dunn Edwards Elliott Ellis Evans Farrell Ferguson "
    "Fernandez Fitzgerald Fletcher Flores Ford Fraser Freeman Fuller Gallagher Garcia Gardner Garrett Gibson Gilbert Gomez Gonzales Gonzalez Graham Greene Griffin Griffiths Gupta Gutierrez Hamilton Hansen "
    "Hanson Harper Harris Harrison Harvey Hawkins Hayes Henderson Hernandez Hilton Hoffman Holmes Howard Hudson Hughes Hussain Ingram Jackson Jacobs Jefferson Jenkins Jensen Jimenez Johnson Johnston Jones "
    "Kaur Kelly Kennedy Khan Kim Kowalski Kumar Larson Lawrence Lawson Lee Lewis Li Lin Liu Lopez Lynch Macdonald Marshall Martinez Matthews McCarthy McDonald McKenzie Medina Mendoza Meyer Miller Mitchell "
    "Mohamed Montgomery Morales Moreno Morris Morrison Mueller Murphy Murray Nelson Newman Nguyen Nichols Obrien Oconnor Olson Ortiz Owens Palmer Parker Patel Patterson Pearson Perez Perkins Perry "
    "Peterson Phillips Pierce Powell Quinn Ramirez Ramos Reid Reilly Reynolds Richards Richardson Riley Rivera Roberts Robertson Robinson Rodriguez Rodgers Rogers Romero Rossi Russell Ryan Sanchez Sanders "
    "Schmidt Schneider Schultz Scott Sharma Shaw Simmons Simpson Singh Smith Snyder Spencer Stephens Stevens Stevenson Stewart Sullivan Sutton Tanaka Taylor Thompson Thomson Torres Tran Tucker Turner "
    "Vargas Vasquez Wagner Wallace Walsh Wang Watkins Watson Weaver Weber Wheeler Wilkinson Williams Williamson Willis Wilson Wong Wu Yang Zhang Zhao Zimmerman".split()
)

PLACES_AND_WORDS = frozenset(
    "Adelaide Alexandria April Art Asia Aurora Austin Autumn Bill Bob Brooklyn Bristol Carolina Carson Cash Chance Charity Chase Chelsea Cheyenne Chuck Cliff Clay Dakota Dallas Dawn Dean Denver Destiny Devon Dale "
    "Drew Eden Faith Florence Forest Frank Georgia Glen Grace Grant Harmony Heath Heaven Holly Honey Hope Houston Hunter India Iris Israel Ivy Jack Jade Jasmine Jordan Joy June Justice Kent Kenya "
    "Lance Liberty Lily London Madison Mark Mason Max May Memphis Mercy Miles Mike Nevada Norman Olive Paris Patience Pat Pearl Peg Penny Phoenix Price Prince Prudence Ray Rich Rob Robin Rocky Rose Ruby Rusty "
    "Sandy Savannah Skip Sky Stone Stormy Summer Sunny Sydney Taylor Tripp Trinity Troy Victoria Vienna Violet Virginia Wade Ward Will Willow Winter Woody".split()
)
"""Given names that are as often a place, a month or an everyday word."""
