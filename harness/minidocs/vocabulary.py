"""The closed vocabulary of minidocs: concepts in two languages, synonyms, places, years, chart and function words.

Pages are drawn in English. Synonyms, topic names and French words are only ever asked for, so that a query can need
more than the letters on the page. Every word is one token of the nano retriever.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """A field of concepts: its name in both languages (never drawn), its concepts, their French words and synonyms."""

    name: str
    french: str
    concepts: tuple[str, ...]
    translations: dict[str, str]
    synonyms: dict[str, str]


_TOPICS = """
agriculture:agronomie
    wheat:blé:cereal harvest:récolte:crop soil:sol maize:maïs
    cattle:bétail orchard:verger tractor:tracteur seeds:semences
energy:énergie
    solar:solaire turbine:éolienne:windmill reactor:réacteur coal:charbon
    battery:batterie pipeline:gazoduc grid:réseau fuel:carburant:petrol
healthcare:santé
    hospital:hôpital:clinic vaccine:vaccin:jab nurse:infirmière surgery:chirurgie
    virus:virus patient:malade dosage:dose pharmacy:pharmacie
banking:banque
    loan:prêt:credit deposit:dépôt:savings bond:obligation currency:devise
    mortgage:hypothèque dividend:dividende audit:audit branch:agence
transport:mobilité
    railway:rail:train highway:autoroute:motorway airport:aéroport cargo:fret
    bicycle:vélo bridge:pont tunnel:tunnel truck:camion
education:enseignement
    school:école:academy teacher:professeur:tutor exam:examen library:bibliothèque
    lesson:leçon diploma:diplôme campus:faculté pupil:élève
climate:climat
    flood:inondation:deluge drought:sécheresse:aridity glacier:glacier storm:tempête
    carbon:carbone rainfall:pluie methane:méthane heatwave:canicule
ocean:océan
    coral:corail:reef fishing:pêche:angling tide:marée whale:baleine
    harbour:port plankton:plancton vessel:navire anchor:ancre
mining:extraction
    copper:cuivre quarry:carrière:pit lithium:lithium gold:or:bullion
    drill:foreuse shaft:puits nickel:nickel smelter:fonderie
software:logiciel
    server:serveur:host compiler:compilateur database:données browser:navigateur
    kernel:noyau cloud:nuage malware:maliciel:spyware patch:correctif
justice:droit
    court:tribunal lawyer:avocat:attorney verdict:jugement prison:cellule:jail
    treaty:traité witness:témoin appeal:recours statute:loi
housing:logement
    tenant:locataire:renter brick:brique roof:toit window:fenêtre
    suburb:banlieue:outskirts kitchen:cuisine plumbing:plomberie lease:bail
tourism:tourisme
    hotel:hôtel:inn beach:plage:shore museum:musée visitor:visiteur
    cruise:croisière luggage:bagage festival:fête resort:station
labour:travail
    salary:salaire:wage union:syndicat:guild strike:grève pension:retraite
    overtime:heures hiring:embauche trainee:stagiaire worker:ouvrier
space:espace
    rocket:fusée:launcher satellite:satellite:orbiter planet:planète crater:cratère
    telescope:télescope comet:comète lunar:lune gravity:pesanteur
nutrition:alimentation
    protein:protéine sugar:sucre:sweetener vitamin:vitamine dairy:lait
    fibre:fibre sodium:sel:salt poultry:volaille spinach:épinard
chemistry:chimie
    acid:acide polymer:polymère:plastic catalyst:catalyseur solvent:solvant
    enzyme:enzyme isotope:isotope crystal:cristal vapour:vapeur:steam
media:presse
    journal:revue:magazine camera:caméra podcast:émission editor:rédacteur
    cinema:film:movie radio:antenne headline:titre publisher:éditeur
"""
# A topic is its name, then its concepts on two lines: `english:french`, and the synonym if it has one.


def _topics(text: str) -> tuple[Topic, ...]:
    lines = text.strip().splitlines()
    topics = []
    for start in range(0, len(lines), 3):
        name, french = lines[start].split(":")
        entries = [entry.split(":") for line in lines[start + 1 : start + 3] for entry in line.split()]
        translations = {entry[0]: entry[1] for entry in entries}
        synonyms = {entry[0]: entry[2] for entry in entries if len(entry) == 3}
        topics.append(Topic(name, french, tuple(translations), translations, synonyms))
    return tuple(topics)


TOPICS = _topics(_TOPICS)


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


COUNTRIES = {
    "Brazil": "Brésil",
    "Canada": "Canada",
    "Chile": "Chili",
    "Egypt": "Égypte",
    "Finland": "Finlande",
    "Greece": "Grèce",
    "India": "Inde",
    "Japan": "Japon",
    "Kenya": "Kenya",
    "Mexico": "Mexique",
    "Norway": "Norvège",
    "Peru": "Pérou",
    "Poland": "Pologne",
    "Spain": "Espagne",
    "Turkey": "Turquie",
    "Vietnam": "Viêtnam",
}
YEARS = tuple(str(year) for year in range(2011, 2023))
CHART_KINDS = {"bar": "barres", "line": "courbe", "pie": "secteurs"}
COLOURS = {"red": "rouge", "blue": "bleu", "green": "vert", "orange": "orange"}

FILLERS = _split("the of and in for with by from to on rose fell grew while under new total share")
"""Words between the facts on a page; they carry no fact."""

ASKING_ENGLISH = _split("which page covers about what is said chart show report titled document")
ASKING_FRENCH = _split("quelle que traite de et en dit le rapport sur graphique intitulé pour avec")

NUMBER = "<number>"
"""What is recorded for a figure in a table cell: figures are drawn, but no query asks for one."""

CONCEPTS = tuple(concept for topic in TOPICS for concept in topic.concepts)
TOPIC_OF = {concept: topic for topic in TOPICS for concept in topic.concepts}
SYNONYMS = {concept: synonym for topic in TOPICS for concept, synonym in topic.synonyms.items()}

FRENCH = (
    {concept: french for topic in TOPICS for concept, french in topic.translations.items()}
    | {topic.name: topic.french for topic in TOPICS}
    | COUNTRIES
    | CHART_KINDS
    | COLOURS
)
"""English word -> French word, for everything a query can name. Years are the same in both."""


def drawn_words() -> tuple[str, ...]:
    """Every word that can stand on a page, lower case, in a fixed order."""
    return tuple(word.lower() for word in (*CONCEPTS, *COUNTRIES, *YEARS, *FILLERS))


def all_words() -> tuple[str, ...]:
    """Every word of pages and queries, lower case, without repeats, in a fixed order: the retriever's vocabulary."""
    asked = (
        *SYNONYMS.values(),
        *(topic.name for topic in TOPICS),
        *CHART_KINDS,
        *COLOURS,
        *ASKING_ENGLISH,
        *FRENCH.values(),
        *ASKING_FRENCH,
    )
    return tuple(dict.fromkeys((*drawn_words(), *(word.lower() for word in asked))))
